#include "attend/nn/rotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/nn/positions.h"
#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace rotation_test {

using at::Tensor;

struct Golden {
  const char* scaling;
  int64_t depth;
  Rotation rotation;
  int64_t positions;
  double magnitude;
  std::vector<double> frequencies;
};

// From ROPE_INIT_FUNCTIONS of transformers 5.24.0 with PyTorch 2.15.0, which computes in float32.
const std::vector<Golden> golden = {
    {"yarn:4,2048",
     16,
     {},
     0,
     1.13862944,
     {1, 0.316227764, 0.100000001, 0.025693506, 0.00624999963, 0.00138349656, 0.000250000012,
      7.90569466e-05}},
    {"yarn:32,4096,32,1",
     64,
     {.base = 150000},
     0,
     1.34657359,
     {1,
      0.689044297,
      0.47478205,
      0.327145875,
      0.225418001,
      0.155322984,
      0.107024424,
      0.0737445652,
      0.0508132726,
      0.0316207521,
      0.0194509663,
      0.0117921913,
      0.00701571396,
      0.00406955462,
      0.00227727205,
      0.00120613095,
      0.000580947497,
      0.000227947836,
      3.83088118e-05,
      2.63964685e-05,
      1.8188337e-05,
      1.25325696e-05,
      8.63549576e-06,
      5.95023948e-06,
      4.09997847e-06,
      2.82506676e-06,
      1.94659629e-06,
      1.34129095e-06,
      9.24208962e-07,
      6.36820914e-07,
      4.38797855e-07,
      3.0235114e-07}},
    {"yarn:2.5,64,8,2",
     16,
     {},
     0,
     1.09162907,
     {1, 0.221359432, 0.0399999991, 0.0126491114, 0.00400000019, 0.00126491114, 0.00039999999,
      0.000126491112}},
    {"yarn:4,2048",
     32,
     {.share = 0.25},
     0,
     1.13862944,
     {1, 0.100000001, 0.00624999963, 0.000250000012}},
    {"llama3:8,8192,1,4",
     16,
     {.base = 500000},
     0,
     1,
     {1, 0.193922758, 0.0376060307, 0.00729266508, 0.000524846022, 3.42810235e-05, 6.64786967e-06,
      1.28917316e-06}},
    {"llama3:32,8192",
     32,
     {.base = 500000},
     0,
     1,
     {1, 0.440366626, 0.193922758, 0.0853971019, 0.0376060307, 0.0165604409, 0.00729266508,
      0.00321144611, 0.000429556705, 1.94616387e-05, 8.57025589e-06, 3.77405445e-06, 1.66196742e-06,
      7.31874934e-07, 3.22293289e-07, 1.41927202e-07}},
    {"float16",
     24,
     {},
     0,
     1,
     {1.0, 0.464111328125, 0.2154541015625, 0.0999755859375, 0.046417236328125, 0.02154541015625,
      0.01000213623046875, 0.004642486572265625, 0.002155303955078125, 0.0010004043579101562,
      0.0004642009735107422, 0.00021541118621826172}},
    {"linear:4", 8, {}, 0, 1, {0.25, 0.0250000004, 0.00249999994, 0.000250000012}},
    {"dynamic:4,2048", 8, {}, 5000, 1, {1, 0.0528726019, 0.00279551209, 0.000147806}},
    {"dynamic:4,2048", 8, {}, 100, 1, {1, 0.100000001, 0.00999999978, 0.00100000005}},
    {"none", 10, {.share = 0.5}, 0, 1, {1, 0.0251188632, 0.000630957307}},
};

TEST(RotaryFrequencies, AreThoseOfTransformers) {
  for (const Golden& row : golden) {
    Rotation rotation = row.rotation;
    rotation.scaling = parse_rotary_scaling(row.scaling);
    const Tensor got = rotary_frequencies(rotation, row.depth, row.positions);
    const Tensor want = at::tensor(row.frequencies, at::kDouble);
    ASSERT_EQ(got.sizes(), want.sizes()) << row.scaling;
    // Powers of float32 numbers have relative errors of a few 2^-24 times the logarithm.
    EXPECT_TRUE(at::allclose(got, want, 4e-6, 0)) << row.scaling << got << want;
    EXPECT_NEAR(rotary_magnitude(rotation.scaling), row.magnitude, 1e-8);
  }
}

// Pairs (i, i + n / 2) are the pairs (2 i, 2 i + 1) of columns in another order.
TEST(Rotate, TurnsPairsOfHalves) {
  const Tensor x = at::randn({2, 3, 7, 6}, at::kDouble);
  const Tensor order = at::tensor({0, 3, 1, 4, 2, 5}, at::kLong);
  const Tensor back = at::tensor({0, 2, 4, 1, 3, 5}, at::kLong);
  const Tensor halves = rotate(x, 11, {.base = 500, .pairs = RotaryPairs::halves});
  EXPECT_TRUE(at::allclose(
      halves, rotate(x.index_select(-1, order), 11, 500).index_select(-1, back), 0, 1e-15));
}

TEST(Rotate, TurnsAShareOfTheColumns) {
  const Tensor x = at::randn({2, 5, 10}, at::kDouble);
  for (const RotaryPairs pairs : {RotaryPairs::adjacent, RotaryPairs::halves}) {
    const Rotation part{.share = 0.4, .pairs = pairs}, whole{.pairs = pairs};
    const Tensor turned = rotate(x, 3, part);
    EXPECT_TRUE(at::equal(turned.narrow(-1, 4, 6), x.narrow(-1, 4, 6)));
    EXPECT_TRUE(at::equal(turned.narrow(-1, 0, 4), rotate(x.narrow(-1, 0, 4), 3, whole)));
  }
  // 5 of 10 columns have 3 frequencies.
  EXPECT_EQ(turned_columns({.share = 0.5}, 10), 6);
  EXPECT_TRUE(at::equal(rotate(x, 3, {.share = 0.5}).narrow(-1, 6, 4), x.narrow(-1, 6, 4)));
}

TEST(Rotate, ScalesByTheMagnitude) {
  const Tensor x = at::randn({1, 4}, at::kDouble);
  const Rotation rotation{.scaling = parse_rotary_scaling("yarn:8,64")};
  const double size = 0.1 * std::log(8) + 1;
  EXPECT_TRUE(at::allclose(rotate(x, 0, rotation), x * size, 0, 1e-15));
  EXPECT_NEAR(rotate(x, 999, rotation).norm().item<double>(), size * x.norm().item<double>(),
              1e-14);
}

TEST(Rotate, HasGradientsForEveryRotation) {
  const Tensor x = at::randn({1, 2, 3, 6}, at::kDouble);
  const Tensor weight = at::randn_like(x);
  for (const Rotation& rotation :
       {Rotation{.share = 0.7, .pairs = RotaryPairs::halves},
        Rotation{.share = 0.4, .scaling = parse_rotary_scaling("yarn:4,16")},
        Rotation{.scaling = parse_rotary_scaling("dynamic:4,2")}}) {
    const reference::Function f = [&](const reference::Tensors& inputs) {
      return (rotate(inputs[0], 2, rotation).square() * weight).sum();
    };
    reference::expect_gradients(f, {x}, {"x"});
    reference::expect_second_gradients(f, {x}, {"x"});
  }
}

TEST(RotaryScaling, IsReadFromText) {
  EXPECT_EQ(parse_rotary_scaling(""), RotaryScaling{});
  EXPECT_EQ(parse_rotary_scaling(" none "), RotaryScaling{});
  EXPECT_EQ(parse_rotary_scaling("yarn: 4, 2048"),
            (RotaryScaling{.rule = RotaryRule::yarn, .factor = 4, .length = 2048}));
  EXPECT_EQ(parse_rotary_scaling("llama3:8,8192,2,16"),
            (RotaryScaling{
                .rule = RotaryRule::llama3, .factor = 8, .length = 8192, .low = 2, .high = 16}));
  for (const char* bad :
       {"yarn", "yarn:4", "yarn:4,2048,32", "yarn:4,2048,1,32", "yarn:0.5,2048", "yarn:4,2048.5",
        "yarn:4,0", "linear:0", "linear:-2", "linear:4,2048", "linear:x", "llama3:8,8192,4,1",
        "none:1", "float16:1", "ntk:4", "yarn:4,2048,", "yarn:nan,2048", "dynamic:4", "linear:inf"})
    EXPECT_THROW(parse_rotary_scaling(bad), Error) << bad;
}

TEST(Rotate, RefusesWhatItCannotTurn) {
  const Tensor x = at::randn({3, 4});
  expect_errors({
      {[&] { rotate(x, 0, {.share = 0}); }, "the share of turned columns is 0; it must be above 0"},
      {[&] { rotate(x, 0, {.share = 0.1}); }, "a share of 0.1 of 4 columns has no whole pairs"},
      {[&] { rotate(x.narrow(1, 0, 3), 0, {}); }, "with an even depth"},
      {[&] { rotate(x, 0, {.base = 0.5}); }, "base is 0.5; it must be above 1"},
      {[&] {
         rotate(x, 0, {.scaling = {RotaryRule::yarn, 4, 0}});
       },
       "numbers out of range"},
  });
}

}  // namespace rotation_test
}  // namespace attend
