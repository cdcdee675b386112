// Invalid input is refused before it is read. The message has the argument's name, its value and
// the valid values.
#include <gmock/gmock.h>

#include <functional>

#include "attend/base/error.h"
#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace bad_input_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A valid problem with all optional arguments.
struct Fitting {
  Case<float> c = [] {
    auto all = random_case<float>({2, 4, 2, 5, 7, 3, 6}, Family::additive);
    add_bias(all, {"all", true, true, true, true, {true, true, true}, true});
    add_sinks(all);
    return all;
  }();
  PlacedCase<float> placed{c, Layout::heads_first};
  Problem<float> problem = placed.problem();
  std::vector<float> context = std::vector<float>(2 * 4 * 5 * 6), lse = std::vector<float>(40);
  std::vector<float> query = c.query, key = c.key, value = c.value, vector = c.vector;
  Result<float> result{contiguous(context.data(), 4, 5, 6), lse.data()};
  Upstream<float> upstream{contiguous<const float>(context.data(), 4, 5, 6), lse.data(),
                           contiguous<const float>(context.data(), 4, 5, 6), nullptr};
  Gradients<float> gradients{contiguous(query.data(), 4, 5, 3), contiguous(key.data(), 2, 7, 3),
                             contiguous(value.data(), 2, 7, 6), vector.data()};

  void forward() { attention_forward(problem, result); }
  void backward() { attention_backward(problem, upstream, gradients); }
};

struct Bad {
  const char* what;  // the name in the message
  const char* wanted;
  std::function<void(Fitting&)> spoil;
};

const int64_t kTooLong[] = {3, 8}, kNegative[] = {-1, 3}, kDescending[] = {0, 4, 2},
              kPast[] = {0, 4, 8}, kStarts[] = {0, 2, 5};
const float kWidths[40] = {1, 1, 1, 0};
const int64_t kOffsets[] = {0, 1, 3, 4, 4, 4}, kFalling[] = {0, 1, 0, 4, 4, 4},
              kBefore[] = {-1, 1, 3, 4, 4, 4}, kKeys[] = {6, 0, 4, 2}, kFarKeys[] = {6, 0, 4, 7},
              kNoKeys[] = {-1, 0, 4, 2}, kTwice[] = {6, 4, 4, 2};
const EdgesByKey kOthersByKey{1, {0, 1, 2}, {}, {}};
const uint8_t kLayout[40] = {1};
const double kCentres[1] = {2};

Bad scope_of(const char* what, const char* wanted, const Condition& condition) {
  // after a valid clause and a valid condition
  return {what, wanted, [condition](Fitting& f) {
            f.problem.scope = {{{Window{}}, {Prefix{3}, condition}}};
          }};
}

const Bad kBad[] = {
    {"shape.batch is -1", "not be negative", [](Fitting& f) { f.problem.shape.batch = -1; }},
    {"shape.heads is -4", "not be negative", [](Fitting& f) { f.problem.shape.heads = -4; }},
    {"shape.key_heads is -1", "not be negative",
     [](Fitting& f) { f.problem.shape.key_heads = -1; }},
    {"shape.queries is -1", "not be negative", [](Fitting& f) { f.problem.shape.queries = -1; }},
    {"shape.keys is -2", "not be negative", [](Fitting& f) { f.problem.shape.keys = -2; }},
    {"shape.depth is -3", "not be negative", [](Fitting& f) { f.problem.shape.depth = -3; }},
    {"shape.value_depth is -1", "not be negative",
     [](Fitting& f) { f.problem.shape.value_depth = -1; }},
    {"shape has", "at most 2^60", [](Fitting& f) { f.problem.shape.keys = int64_t{1} << 56; }},
    {"key_heads is 3", "divide shape.heads, 4", [](Fitting& f) { f.problem.shape.key_heads = 3; }},
    {"key_heads is 0", "divide shape.heads, 4", [](Fitting& f) { f.problem.shape.key_heads = 0; }},
    {"query is null", "120 numbers", [](Fitting& f) { f.problem.query.data = nullptr; }},
    {"key is null", "84 numbers", [](Fitting& f) { f.problem.key.data = nullptr; }},
    {"value is null", "168 numbers", [](Fitting& f) { f.problem.value.data = nullptr; }},
    {"score.vector is null", "needs it", [](Fitting& f) { f.problem.score.vector = nullptr; }},
    {"soft_cap is -1", "positive", [](Fitting& f) { f.problem.score.soft_cap = -1; }},
    {"soft_cap is nan", "positive", [](Fitting& f) { f.problem.score.soft_cap = std::nan(""); }},
    {"negative_slope is 1.5", "0 to 1", [](Fitting& f) { f.problem.score.negative_slope = 1.5; }},
    {"relative_count is 0", "at least 1", [](Fitting& f) { f.problem.bias.relative_count = 0; }},
    {"centres is null", "together", [](Fitting& f) { f.problem.bias.centres = nullptr; }},
    {"widths is null", "together", [](Fitting& f) { f.problem.bias.widths = nullptr; }},
    {"key_sums is null", "together",
     [](Fitting& f) {
       static const double sums = 0;
       f.problem.bias.query_sums = &sums;
     }},
    {"product_columns is 0", "1 to 1048576",
     [](Fitting& f) { f.problem.bias.key_products = kWidths; }},
    {"columns is null", "11 numbers",
     [](Fitting& f) {
       f.problem.bias.key_products = kWidths;
       f.problem.bias.product_columns = 2;
     }},
    {"columns[1] is 2", "0 to 1",
     [](Fitting& f) {
       static const int32_t columns[] = {0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0};
       f.problem.bias.key_products = kWidths;
       f.problem.bias.product_columns = 2;
       f.problem.bias.columns = columns;
     }},
    {"columns_stride is 3", "queries + keys - 1, 11",
     [](Fitting& f) {
       static const int32_t columns[11] = {};
       f.problem.bias.query_products = kWidths;
       f.problem.bias.product_columns = 2;
       f.problem.bias.columns = columns;
       f.problem.bias.columns_stride = 3;
     }},
    {"widths[3] is 0", "positive", [](Fitting& f) { f.problem.bias.widths = kWidths; }},
    {"probability is 1", "below 1", [](Fitting& f) { f.problem.dropout.probability = 1; }},
    {"probability is -0.1", "below 1", [](Fitting& f) { f.problem.dropout.probability = -0.1; }},
    {"probability is nan", "below 1",
     [](Fitting& f) { f.problem.dropout.probability = std::nan(""); }},
    {"sinks", "only softmax", [](Fitting& f) { f.problem.normaliser = Normaliser::sparsemax; }},
    scope_of("reaches -1 to the left", "neither must be negative", Window{.left = -1}),
    scope_of("and -2 to the right", "neither must be negative", Window{.right = -2}),
    scope_of("dilation 0", "at least 1", Window{.dilation = 0}),
    scope_of("centres of the scope is null", "40 numbers", Around{}),
    scope_of("reaches -1 keys", "not be negative", Around{kCentres, 0, 0, 0, -1}),
    scope_of("key lengths of the scope is null", "2 numbers", KeyLengths{}),
    scope_of("key length 1 of the scope is 8", "number of keys, 7", KeyLengths{kTooLong}),
    scope_of("key length 0 of the scope is -1", "number of keys, 7", KeyLengths{kNegative}),
    scope_of("length -1", "not be negative", Prefix{-1}),
    scope_of("global rows are -1", "not be negative", GlobalRows{-1}),
    scope_of("segments number -1", "not be negative", Segments{kStarts, kStarts, -1}),
    scope_of("query_starts is null", "3 numbers", Segments{nullptr, kStarts, 2}),
    scope_of("key_starts is null", "3 numbers", Segments{kStarts, nullptr, 2}),
    scope_of("query_starts goes from 4 to 2", "ascend", Segments{kDescending, kStarts, 2}),
    scope_of("key_starts goes from -1 to 3", "ascend from 0", Segments{kStarts, kNegative, 1}),
    scope_of("segments end at key 8", "there are 7 keys", Segments{kStarts, kPast, 2}),
    scope_of("blocks of the scope have 0 rows", "1 is the least", BlockLayout{kLayout, 1, 0}),
    scope_of("-1 columns", "not be negative", BlockLayout{kLayout, -1, 4}),
    scope_of("3 columns of 4 keys", "there are 7 keys", BlockLayout{kLayout, 3, 4}),
    scope_of("begins at 4 in its first block", "0 to 3", BlockLayout{kLayout, 1, 4, 4, 0}),
    scope_of("begins at -1 in its first block", "0 to 3", BlockLayout{kLayout, 1, 4, 0, -1}),
    scope_of("block layout is null", "must point to", BlockLayout{nullptr, 2, 4}),
    scope_of("edges number -1", "not be negative", EdgeLists{kOffsets, kKeys, -1}),
    scope_of("offsets of the edges is null", "8 numbers", EdgeLists{nullptr, kKeys, 4}),
    scope_of("keys of the edges is null", "4 numbers", EdgeLists{kOffsets, nullptr, 4}),
    scope_of("edges of query 2 are 3 to 4 of 3", "ascend", EdgeLists{kOffsets, kKeys, 3}),
    scope_of("edges of query 1 are 1 to 0 of 4", "ascend", EdgeLists{kFalling, kKeys, 4}),
    scope_of("edges of query 0 are -1 to 1 of 4", "ascend", EdgeLists{kBefore, kKeys, 4}),
    scope_of("edge 3 leads query 2 to key 7", "there are 7 keys", EdgeLists{kOffsets, kFarKeys, 4}),
    scope_of("edge 0 leads query 0 to key -1", "there are 7 keys", EdgeLists{kOffsets, kNoKeys, 4}),
    scope_of("edge 2 leads query 1 to key 4 after key 4", "must ascend",
             EdgeLists{kOffsets, kTwice, 4}),
    scope_of("edges by key are of 3 offsets", "1 lists of 7 keys have 8",
             EdgeLists{kOffsets, kKeys, 4, 0, 0, &kOthersByKey}),
    {"bias.edges", "not one clause", [](Fitting& f) { f.problem.bias.edges = {kWidths, 0, 0, 0}; }},
    scope_of("mask of the scope is null", "280 numbers", DenseMask{}),
};

TEST(BadInput, IsRefusedByEveryPass) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.what);
    Fitting f;
    f.forward();
    f.backward();
    bad.spoil(f);
    const auto message = ThrowsMessage<Error>(
        AllOf(::testing::StartsWith("[attention] "), HasSubstr(bad.what), HasSubstr(bad.wanted)));
    std::vector<float> weights(2 * 4 * 7);
    std::vector<int64_t> keys(8);
    EXPECT_THAT([&] { f.forward(); }, message);
    EXPECT_THAT([&] { f.backward(); }, message);
    EXPECT_THAT(
        [&] {
          attention_weights(f.problem, f.lse.data(), {{}, 0, 1},
                            contiguous(weights.data(), 4, 1, 7));
        },
        message);
    EXPECT_THAT(
        [&] {
          attention_top(f.problem, f.lse.data(), {{}, 0, 1}, 1, weights.data(), keys.data());
        },
        message);
    EXPECT_THAT(
        [&] {
          attention_entropy(f.problem, f.lse.data(), {{}, 0, 1}, weights.data());
        },
        message);
    EXPECT_THAT(
        [&] {
          attention_column_sums(f.problem, f.lse.data(), {{}, 0, 1}, weights.data());
        },
        message);
  }
}

TEST(BadInput, WhatForwardWrites) {
  Fitting f;
  f.result.context.data = nullptr;
  EXPECT_THAT([&] { f.forward(); }, ThrowsMessage<Error>(HasSubstr("context is null")));
}

TEST(BadInput, WhatBackwardReadsAndWrites) {
  const Bad cases[] = {
      {"upstream.context is null", "240", [](Fitting& f) { f.upstream.context.data = nullptr; }},
      {"upstream.lse is null", "40", [](Fitting& f) { f.upstream.lse = nullptr; }},
      {"grad_context is null", "240", [](Fitting& f) { f.upstream.grad_context.data = nullptr; }},
      {"gradients.query is null", "120", [](Fitting& f) { f.gradients.query.data = nullptr; }},
      {"gradients.key is null", "84", [](Fitting& f) { f.gradients.key.data = nullptr; }},
      {"gradients.value is null", "168", [](Fitting& f) { f.gradients.value.data = nullptr; }},
      {"bias.dense", "lacks it",
       [](Fitting& f) {
         f.gradients.bias = f.query.data();
         f.problem.bias.dense.data = nullptr;
       }},
      {"bias.slopes", "lacks it",
       [](Fitting& f) {
         f.gradients.slopes = f.query.data();
         f.problem.bias.slopes = nullptr;
       }},
      {"bias.relative", "lacks it",
       [](Fitting& f) {
         f.gradients.relative = f.query.data();
         f.problem.bias.relative.data = nullptr;
       }},
      {"bias.centres", "lacks it",
       [](Fitting& f) {
         f.gradients.centres = f.query.data();
         f.problem.bias.centres = f.problem.bias.widths = nullptr;
       }},
      {"bias.widths", "lacks it",
       [](Fitting& f) {
         f.gradients.widths = f.query.data();
         f.problem.bias.centres = f.problem.bias.widths = nullptr;
       }},
      {"bias.key_sums", "lacks it",
       [](Fitting& f) {
         static double sums = 0;
         f.gradients.key_sums = &sums;
       }},
      {"bias.key_products", "lacks it",
       [](Fitting& f) { f.gradients.key_products = f.query.data(); }},
      {"bias.query_products", "lacks it",
       [](Fitting& f) { f.gradients.query_products = f.query.data(); }},
      {"sinks", "lacks it",
       [](Fitting& f) {
         f.gradients.sinks = f.query.data();
         f.problem.sinks = nullptr;
       }},
  };
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.what);
    Fitting f;
    bad.spoil(f);
    EXPECT_THAT([&] { f.backward(); },
                ThrowsMessage<Error>(AllOf(HasSubstr(bad.what), HasSubstr(bad.wanted))));
  }
}

TEST(BadInput, Selections) {
  Fitting f;
  std::vector<float> out(1000);
  const int64_t past[] = {0, 4}, negative[] = {-1};
  const auto entropy = [&](const Selection& selection) {
    return [&f, &out, selection] {
      attention_entropy(f.problem, f.lse.data(), selection, out.data());
    };
  };
  const auto says = [](const char* text) { return ThrowsMessage<Error>(HasSubstr(text)); };
  EXPECT_THAT(entropy({{}, 4, 2}), says("2 rows of the weights from row 4"));
  EXPECT_THAT(entropy({{}, -1, 2}), says("2 rows of the weights from row -1"));
  EXPECT_THAT(entropy({{}, 0, -1}), says("-1 rows"));
  EXPECT_THAT(entropy({{}, std::numeric_limits<int64_t>::max(), 1}), says("there are 5 queries"));
  EXPECT_THAT(entropy({past, 0, 1}), says("head 4 of the weights was asked for; there are 4"));
  EXPECT_THAT(entropy({negative, 0, 1}), says("head -1"));
  EXPECT_THAT(
      [&] {
        attention_entropy<float>(f.problem, nullptr, {{}, 0, 1}, out.data());
      },
      says("lse is null"));
  EXPECT_THAT(
      [&] {
        attention_entropy<float>(f.problem, f.lse.data(), {{}, 0, 1}, nullptr);
      },
      says("entropy is null"));
  EXPECT_THAT(
      [&] {
        attention_weights<float>(f.problem, f.lse.data(), {{}, 0, 1}, {});
      },
      says("weights is null"));
  EXPECT_THAT(
      [&] {
        attention_column_sums<float>(f.problem, f.lse.data(), {{}, 0, 1}, nullptr);
      },
      says("sums is null"));
  int64_t key = 0;
  EXPECT_THAT(
      [&] {
        attention_top(f.problem, f.lse.data(), {{}, 0, 1}, 0, out.data(), &key);
      },
      says("the 0 largest weights"));
  EXPECT_THAT(
      [&] {
        attention_top<float>(f.problem, f.lse.data(), {{}, 0, 1}, 1, out.data(), nullptr);
      },
      says("keys is null"));
}

// A stride of 0 repeats one key: the shape fits into memory, but the intermediate results do not.
// The additive family allocates before its threads start. Each thread allocates the thresholds and
// the gradients of keys.
TEST(BadInput, MoreThanTheMemory) {
  const auto message =
      ThrowsMessage<Error>(AllOf(HasSubstr("no memory for "), HasSubstr("of 4 bytes")));
  for (const Family family : {Family::additive, Family::dot}) {
    for (const int threads : {1, 3}) {
      const auto c = random_case<float>({1, 1, 1, 300, 1, 3, 2}, family);
      const PlacedCase<float> placed{c, Layout::heads_first};
      Placed<float> context(1, 1, 300, 2, Layout::heads_first);
      auto query = c.query, key = c.key, value = c.value;
      std::vector<float> lse(300);
      const Result<float> result{context.view(), lse.data()};
      Problem<float> problem = placed.problem();
      problem.key.row_stride = problem.value.row_stride = 0;
      problem.shape.keys = int64_t{1} << 46;
      const Upstream<float> upstream{context.input(), lse.data(), context.input()};
      const Gradients<float> gradients{
          contiguous(query.data(), 1, 300, 3), {key.data()}, {value.data()}};
      EXPECT_THAT([&] { attention_backward(problem, upstream, gradients, threads); }, message);
      problem.normaliser = Normaliser::sparsemax;
      EXPECT_THAT([&] { attention_forward(problem, result, threads); }, message);
      problem.shape.keys = 1;
      attention_forward(problem, result, threads);
      EXPECT_EQ(context.numbers()[0], c.value[0]);
    }
  }
}

TEST(BadInput, MaskOfDropout) {
  std::vector<float> mask(4);
  EXPECT_THAT(
      [&] {
        dropout_mask({1, 1, 1, 2, 2, 1, 1}, {1.0, 1}, mask.data());
      },
      ThrowsMessage<Error>(HasSubstr("probability is 1")));
}

}  // namespace bad_input_test
}  // namespace attend::kernels::testing
