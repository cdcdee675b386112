#include "attend/models/source_input.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace source_input_test {

using at::Tensor;
using test::error_of;
using testing::HasSubstr;

constexpr int64_t height = 4, width = 6;
// Images of 2 x 3 patches of 2 x 2 pixels.
const SourceShape shape = ImageForm{4, height / 2, width / 2};

Pass generator(uint64_t seed) {
  return {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
}

// [N, 6, 4] -> [N, 4, 6].
Tensor pixels(const Tensor& patches) {
  Tensor image = torch::empty({patches.size(0), height, width}, patches.options());
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < width; ++column)
      image.select(1, row).select(1, column) =
          patches.select(1, row / 2 * 3 + column / 2).select(1, row % 2 * 2 + column % 2);
  return image;
}

// With an identity map the output equals the input of the map.
SourceInput transparent(const ImageInputConfig& config) {
  SourceInput input(shape, 4, config);
  torch::NoGradGuard no_gradient;
  for (auto& parameter : input.named_parameters())
    parameter.value().copy_(parameter.key() == "weight" ? torch::eye(4) : torch::zeros(4));
  return input;
}

Tensor moved_by(const Tensor& image, int64_t down, int64_t right) {
  Tensor result = torch::zeros_like(image);
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < width; ++column) {
      const int64_t from_row = row - down, from_column = column - right;
      if (from_row >= 0 && from_row < height && from_column >= 0 && from_column < width)
        result[row][column] = image[from_row][from_column];
    }
  return result;
}

TEST(SourceInput, MirrorsHalfOfTheImagesInTraining) {
  SourceInput input = transparent({.flip = true});
  const Tensor patches = torch::rand({400, 6, 4});
  EXPECT_TRUE(torch::equal(input.forward(patches, {}), patches));
  const Tensor image = pixels(patches), seen = pixels(input.forward(patches, generator(1)));
  int64_t mirrored = 0;
  for (int64_t i = 0; i < 400; ++i) {
    const bool same = torch::equal(seen[i], image[i]);
    ASSERT_TRUE(same || torch::equal(seen[i], image[i].flip(1))) << i;
    mirrored += same ? 0 : 1;
  }
  // 5 standard deviations of 10.
  EXPECT_NEAR(mirrored, 200, 50);
  EXPECT_TRUE(torch::equal(pixels(input.forward(patches, generator(1))), seen));
}

TEST(SourceInput, MovesEachImageByItsOwnPixelsInTraining) {
  SourceInput input = transparent({.shift = 1});
  const Tensor patches = torch::rand({200, 6, 4}) + 1;
  EXPECT_TRUE(torch::equal(input.forward(patches, {}), patches));
  const Tensor image = pixels(patches), seen = pixels(input.forward(patches, generator(2)));
  std::set<std::pair<int64_t, int64_t>> moves;
  for (int64_t i = 0; i < 200; ++i) {
    bool found = false;
    for (int64_t down = -1; down <= 1; ++down)
      for (int64_t right = -1; right <= 1; ++right)
        if (torch::equal(seen[i], moved_by(image[i], down, right))) {
          moves.emplace(down, right);
          found = true;
        }
    ASSERT_TRUE(found) << i;
  }
  EXPECT_EQ(moves.size(), 9U);
}

// The layers one after another, in the order of the header.
TEST(SourceInput, ConvolvesAndHalves) {
  torch::manual_seed(5);
  SourceInput input(shape, 7, {.convolutions = 1, .channels = 3});
  input.to(torch::kDouble);
  const auto parameters = input.named_parameters();
  const Tensor patches = torch::randn({2, 6, 4}, torch::kDouble);
  const auto convolution = [&](const Tensor& x, const std::string& name) {
    return torch::conv2d(x, parameters[name + ".weight"], parameters[name + ".bias"], 1, 1).relu();
  };
  Tensor x = convolution(pixels(patches).unsqueeze(1), "convolution0");
  ASSERT_EQ(x.size(1), 3);
  x = convolution(torch::max_pool2d(x, 2), "convolution1");
  ASSERT_EQ(x.sizes(), (std::vector<int64_t>{2, 6, 2, 3}));
  const Tensor expected =
      torch::linear(x.flatten(2).transpose(1, 2), parameters["weight"], parameters["bias"]);
  // Some hundred operations on numbers near 1.
  EXPECT_TRUE(torch::allclose(input.forward(patches, {}), expected, 1e-12, 1e-12));
}

// An image in a set passes the same convolutions as a single image. The vectors of a set are
// concatenated before the linear map.
TEST(SourceInput, ConvolvesEachImageOfASet) {
  torch::manual_seed(7);
  const SourceShape set = ImageSetForm{{24, height / 2, width / 2}};
  SourceInput input(set, 7, {.convolutions = 1, .channels = 3});
  SourceInput alone(shape, 7, {.convolutions = 1, .channels = 3});
  input.to(torch::kDouble);
  alone.to(torch::kDouble);
  const auto parameters = input.named_parameters();
  ASSERT_EQ(parameters["weight"].sizes(), (std::vector<int64_t>{7, 36}));
  {
    const torch::NoGradGuard no_gradient;
    auto same = alone.named_parameters();
    for (const char* name : {"convolution0", "convolution1"})
      for (const char* part : {".weight", ".bias"})
        same[std::string(name) + part].copy_(parameters[std::string(name) + part]);
    same["weight"].copy_(parameters["weight"].slice(1, 0, 6));
    same["bias"].zero_();
  }
  const Tensor sets = torch::randn({2, 3, 24}, torch::kDouble);
  const Tensor result = input.forward(sets, {});
  ASSERT_EQ(result.sizes(), (std::vector<int64_t>{2, 3, 7}));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t e = 0; e < 3; ++e) {
      const Tensor image = sets[b][e].view({1, 6, 4});
      Tensor expected = parameters["bias"].clone();
      for (int64_t patch = 0; patch < 6; ++patch) {
        const torch::NoGradGuard no_gradient;
        alone.named_parameters()["weight"].copy_(
            parameters["weight"].slice(1, patch * 6, patch * 6 + 6));
        expected = expected + alone.forward(image, {})[0][patch];
      }
      EXPECT_TRUE(torch::allclose(result[b][e], expected, 1e-12, 1e-12)) << b << " " << e;
    }
}

// Each image of a set is moved independently.
TEST(SourceInput, MovesEachImageOfASet) {
  const SourceShape set = ImageSetForm{{24, height / 2, width / 2}};
  SourceInput input(set, 24, {.flip = true});
  input.to(torch::kDouble);
  {
    const torch::NoGradGuard no_gradient;
    auto parameters = input.named_parameters();
    parameters["weight"].copy_(torch::eye(24, torch::kDouble));
    parameters["bias"].zero_();
  }
  torch::manual_seed(8);
  const Tensor sets = torch::randn({4, 25, 24}, torch::kDouble);
  const Tensor moved = input.forward(sets, generator(2));
  int64_t mirrored = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const Tensor before = sets.view({100, 6, 4})[i].unsqueeze(0);
    const Tensor after = moved.view({100, 6, 4})[i].unsqueeze(0);
    if (torch::equal(pixels(after), pixels(before).flip(2)))
      ++mirrored;
    else
      ASSERT_TRUE(torch::equal(after, before)) << i;
  }
  EXPECT_GT(mirrored, 25);
  EXPECT_LT(mirrored, 75);
}

TEST(SourceInput, GradientsAreDifferences) {
  torch::manual_seed(6);
  SourceInput input(shape, 3, {.convolutions = 1, .channels = 2, .flip = true, .shift = 1});
  input.to(torch::kDouble);
  const Tensor patches = torch::randn({3, 6, 4}, torch::kDouble);
  reference::expect_parameter_slopes(
      input, [&] { return input.forward(patches, generator(3)).square().sum(); });
}

TEST(SourceInput, RefusesWhatDoesNotFitTheSources) {
  const auto refused = [](const SourceShape& shape, const ImageInputConfig& config) {
    return error_of([&] { SourceInput(shape, 8, config); });
  };
  const SourceShape tokens(9), sound(FrameForm{40});
  EXPECT_THAT(refused(tokens, {.convolutions = 1}), HasSubstr("model.convolutions is 1"));
  EXPECT_THAT(refused(tokens, {.flip = true}), HasSubstr("model.flip is true"));
  EXPECT_THAT(refused(sound, {.shift = 2}), HasSubstr("model.shift is 2"));
  EXPECT_THAT(refused(shape, {.convolutions = 2}), HasSubstr("take data.patch = 4"));
}

}  // namespace source_input_test
}  // namespace attend
