// The shim of the Python package without PyTorch: plain arrays become the problems of the kernels.
#include <gmock/gmock.h>

#include <memory>
#include <random>

#include "attend/base/error.h"
#include "attend/kernels/causal_convolution.h"
#include "attend/kernels/recurrence.h"
#include "python/shim/attention_call.h"
#include "python/shim/recurrence_call.h"

namespace attend::shim {
namespace shim_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kBatch = 2, kHeads = 4, kQueries = 5, kKeys = 7, kDepth = 3, kValueDepth = 6;

// Owns the memory of arrays.
class Arrays {
 public:
  template <class T>
  Array make(std::initializer_list<int64_t> sizes, std::vector<T> numbers) {
    auto memory = std::make_shared<std::vector<T>>(std::move(numbers));
    kept_.push_back(memory);
    Array x;
    x.data = memory->data();
    x.type = type_of<T>;
    x.given = true;
    x.axes = static_cast<int64_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), x.sizes.begin());
    int64_t stride = 1;
    for (int64_t axis = x.axes; axis-- > 0; stride *= x.size(axis))
      x.strides[static_cast<size_t>(axis)] = stride;
    return x;
  }

  Array drawn(std::initializer_list<int64_t> sizes) {
    std::vector<float> numbers(count(sizes));
    for (float& x : numbers) x = std::normal_distribution<float>()(random_);
    return make<float>(sizes, std::move(numbers));
  }

  Array zeros(std::initializer_list<int64_t> sizes) {
    return make<float>(sizes, std::vector<float>(count(sizes)));
  }

 private:
  static size_t count(std::initializer_list<int64_t> sizes) {
    int64_t product = 1;
    for (const int64_t size : sizes) product *= size;
    return static_cast<size_t>(product);
  }

  std::mt19937 random_{1};
  std::vector<std::shared_ptr<void>> kept_;
};

std::vector<float> numbers_of(const Array& x) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < x.axes; ++axis) count *= x.size(axis);
  const auto* data = static_cast<const float*>(x.data);
  return {data, data + count};
}

AttentionCall plain_call(Arrays& arrays) {
  AttentionCall call;
  call.parts[part::query] = arrays.drawn({kBatch, kHeads, kQueries, kDepth});
  call.parts[part::key] = arrays.drawn({kBatch, 2, kKeys, kDepth});
  call.parts[part::value] = arrays.drawn({kBatch, 2, kKeys, kValueDepth});
  call.choices = {0, 0, 0, 9, 0, 0};
  call.numbers = {0.5, 0, 0.2, 0};
  return call;
}

kernels::Problem<float> plain_problem(const AttentionCall& call) {
  kernels::Problem<float> p;
  p.shape = {kBatch, kHeads, 2, kQueries, kKeys, kDepth, kValueDepth};
  p.score.scale = 0.5;
  p.query = view<float>(call.parts[part::query]);
  p.key = view<float>(call.parts[part::key]);
  p.value = view<float>(call.parts[part::value]);
  return p;
}

struct Outputs {
  Array context, lse;
};

Outputs outputs(Arrays& arrays) {
  return {arrays.zeros({kBatch, kHeads, kQueries, kValueDepth}),
          arrays.zeros({kBatch, kHeads, kQueries})};
}

// The contexts of a call and of a problem must have the same bits.
void expect_equal(const AttentionCall& call, const kernels::Problem<float>& problem,
                  Arrays& arrays) {
  const Outputs mine = outputs(arrays), direct = outputs(arrays);
  attention_forward(call, mine.context, mine.lse, {}, 1);
  kernels::attention_forward<float>(
      problem, {view<float, float>(direct.context), pointer<float>(direct.lse)}, 1);
  EXPECT_EQ(numbers_of(mine.context), numbers_of(direct.context));
  EXPECT_EQ(numbers_of(mine.lse), numbers_of(direct.lse));
}

int64_t code(Code one) { return static_cast<int64_t>(one); }

TEST(Shim, DecodesEveryCondition) {
  Arrays arrays;
  const Array lengths = arrays.make<int64_t>({kBatch}, {3, 7});
  const Array starts = arrays.make<int64_t>({3}, {0, 2, 5});
  const Array blocks = arrays.make<uint8_t>({1, 1, 3, 4}, {1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0});
  std::vector<uint8_t> allowed(kBatch * kQueries * kKeys);
  for (size_t n = 0; n < allowed.size(); ++n) allowed[n] = n % 3 != 0;
  const Array mask = arrays.make<uint8_t>({kBatch, 1, kQueries, kKeys}, allowed);
  const Array centres = arrays.make<double>({1, 1, kQueries}, {0, 2, 3, 5, 6});
  const Array offsets = arrays.make<int64_t>({1, 1, kQueries + 1}, {0, 2, 2, 3, 6, 7});
  const Array edges = arrays.make<int64_t>({7}, {0, 4, 1, 2, 3, 6, 5});
  const auto* own = pointer<const int64_t>(lengths);
  const auto* of_starts = pointer<const int64_t>(starts);
  const auto* edge_offsets = pointer<const int64_t>(offsets);
  const std::vector<std::pair<std::vector<int64_t>, kernels::Condition>> cases = {
      {{code(Code::window), 2, 1, -1, 2, 0}, kernels::Window{2, 1, -1, 2, own}},
      {{code(Code::window), 2, 1, 1, 1, -1}, kernels::Window{2, 1, 1, 1, nullptr}},
      {{code(Code::key_lengths), 0}, kernels::KeyLengths{own}},
      {{code(Code::query_lengths), 0}, kernels::QueryLengths{own}},
      {{code(Code::prefix), 3}, kernels::Prefix{3}},
      {{code(Code::global_rows), 2}, kernels::GlobalRows{2}},
      {{code(Code::segments), 1, 1}, kernels::Segments{of_starts, of_starts, 2}},
      {{code(Code::blocks), 2, 2, 0, 0},
       kernels::BlockLayout{pointer<const uint8_t>(blocks), 4, 2, 0, 0, 0, 0}},
      {{code(Code::mask), 3},
       kernels::DenseMask{pointer<const uint8_t>(mask), kQueries * kKeys, 0, kKeys, 1}},
      {{code(Code::around), 4, 2}, kernels::Around{pointer<const double>(centres), 0, 0, 1, 2}},
      {{code(Code::edges), 5, 6},
       kernels::EdgeLists{edge_offsets, pointer<const int64_t>(edges), 7, 0, 0, nullptr}},
  };
  for (const auto& [numbers, condition] : cases) {
    SCOPED_TRACE(testing::PrintToString(numbers));
    AttentionCall call = plain_call(arrays);
    call.tensors = {lengths, starts, blocks, mask, centres, offsets, edges};
    call.scope = numbers;
    call.scope.push_back(code(Code::end_of_clause));
    kernels::Problem<float> problem = plain_problem(call);
    problem.scope.any_of = {{condition}};
    expect_equal(call, problem, arrays);
    // A second clause, of two conditions.
    for (const int64_t number : {code(Code::prefix), int64_t{4}, code(Code::window), int64_t{9},
                                 int64_t{0}, int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-1}})
      call.scope.push_back(number);
    problem.scope.any_of.push_back({kernels::Prefix{4}, kernels::Window{9, 0, 0, 1, nullptr}});
    expect_equal(call, problem, arrays);
  }
}

TEST(Shim, PassesChoicesAndParts) {
  Arrays arrays;
  AttentionCall call = plain_call(arrays);
  call.choices = {1, 2, 0, 9, 2, 3};
  call.numbers = {0.7, 1.5, 0.2, 0.25};
  call.parts[part::vector] = arrays.drawn({kHeads, kDepth});
  call.parts[part::dense] = arrays.drawn({1, kHeads, 1, kKeys});
  call.parts[part::slopes] = arrays.drawn({kHeads});
  call.parts[part::sinks] = arrays.drawn({kHeads});
  call.parts[part::relative] = arrays.drawn({1, kHeads, kQueries, 4});
  kernels::Problem<float> p = plain_problem(call);
  p.score = {.family = kernels::Family::additive,
             .scale = 0.7,
             .vector = pointer<const float>(call.parts[part::vector]),
             .vector_head_stride = kDepth,
             .activation = kernels::Activation::relu,
             .soft_cap = 1.5};
  p.bias.dense = {pointer<const float>(call.parts[part::dense]), 0, kKeys, 0};
  p.bias.slopes = pointer<const float>(call.parts[part::slopes]);
  p.bias.slope_offset = 2;
  p.bias.relative = {pointer<const float>(call.parts[part::relative]), 0, kQueries * 4, 4};
  p.bias.relative_count = 4;
  p.bias.relative_offset = 3;
  p.sinks = pointer<const float>(call.parts[part::sinks]);
  p.dropout = {0.25, 9};
  expect_equal(call, p, arrays);
}

TEST(Shim, ComputesGradientsAndSummaries) {
  Arrays arrays;
  const AttentionCall call = plain_call(arrays);
  const kernels::Problem<float> p = plain_problem(call);
  const auto [context, lse] = outputs(arrays);
  attention_forward(call, context, lse, {}, 1);
  const Array upstream = arrays.drawn({kBatch, kHeads, kQueries, kValueDepth});
  std::array<Array, part::count> mine, direct;
  for (auto* gradients : {&mine, &direct}) {
    (*gradients)[part::query] = arrays.zeros({kBatch, kHeads, kQueries, kDepth});
    (*gradients)[part::key] = arrays.zeros({kBatch, 2, kKeys, kDepth});
    (*gradients)[part::value] = arrays.zeros({kBatch, 2, kKeys, kValueDepth});
  }
  attention_backward(call, context, lse, upstream, {}, mine, 1);
  kernels::attention_backward<float>(
      p, {view<float>(context), pointer<const float>(lse), view<float>(upstream), nullptr},
      {view<float, float>(direct[part::query]), view<float, float>(direct[part::key]),
       view<float, float>(direct[part::value])},
      1);
  for (size_t n = 0; n < part::vector; ++n) EXPECT_EQ(numbers_of(mine[n]), numbers_of(direct[n]));
  const Array weights = arrays.zeros({kBatch, 1, 2, kKeys}), entropy = arrays.zeros({kBatch, 1, 2});
  attention_weights(call, lse, {{3}, 1, 2}, weights, 1);
  attention_entropy(call, lse, {{3}, 1, 2}, entropy, 1);
  const std::vector<float> rows = numbers_of(weights), entropies = numbers_of(entropy);
  for (size_t row = 0; row < entropies.size(); ++row) {
    double sum = 0, expected = 0;
    for (size_t j = 0; j < kKeys; ++j) {
      const double w = rows[row * kKeys + j];
      sum += w;
      expected -= w * std::log(w);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_NEAR(entropies[row], expected, 1e-5);
  }
}

TEST(Shim, RefusesWhatDoesNotFit) {
  Arrays arrays;
  const auto refused = [&](const char* text, auto change) {
    AttentionCall call = plain_call(arrays);
    change(call);
    const Outputs to = outputs(arrays);
    EXPECT_THAT([&] { attention_forward(call, to.context, to.lse, {}, 1); },
                ThrowsMessage<Error>(HasSubstr(text)));
  };
  refused("key has shape", [&](AttentionCall& call) {
    call.parts[part::key] = arrays.drawn({1, 2, kKeys, kDepth});
  });
  refused("dense is int64; it must be float32", [&](AttentionCall& call) {
    call.parts[part::dense] = arrays.make<int64_t>({1, 1, 1, kKeys}, std::vector<int64_t>(kKeys));
  });
  refused("dense has shape [1, 1, 1, 6]; it must have shape [2 or 1, 4 or 1, 5 or 1, 7]",
          [&](AttentionCall& call) {
            call.parts[part::dense] = arrays.drawn({1, 1, 1, 6});
          });
  refused("scope ends within a condition", [](AttentionCall& call) { call.scope = {3}; });
  refused("unknown code 77", [](AttentionCall& call) { call.scope = {77}; });
  refused("scope names tensor 2; there are 0", [](AttentionCall& call) {
    call.scope = {1, 2, -1};
  });
  refused("lacks its tensor", [](AttentionCall& call) { call.scope = {7, -1, -1}; });
  refused("choice family is 9", [](AttentionCall& call) { call.choices[choice::family] = 9; });
  refused("5 choices", [](AttentionCall& call) { call.choices.pop_back(); });
}

TEST(Shim, ComputesRecurrences) {
  Arrays arrays;
  constexpr int64_t kTokens = 9;
  RecurrenceCall call;
  call.parts[recurrence_part::query] = arrays.drawn({1, 2, kTokens, kDepth});
  call.parts[recurrence_part::key] = arrays.drawn({1, 2, kTokens, kDepth});
  call.parts[recurrence_part::value] = arrays.drawn({1, kHeads, kTokens, kValueDepth});
  call.offsets = arrays.make<int64_t>({3}, {0, 4, kTokens});
  call.delta = call.normalise = true;
  const Array output = arrays.zeros({1, kHeads, kTokens, kValueDepth});
  const Array last = arrays.zeros({2, kHeads, kDepth, kValueDepth});
  recurrence_forward(call, output, last, {}, 1);
  kernels::Recurrence<float> p;
  p.shape = {1, kHeads, 2, kTokens, kDepth, kValueDepth, 0};
  p.query = view<float>(call.parts[recurrence_part::query]);
  p.key = view<float>(call.parts[recurrence_part::key]);
  p.value = view<float>(call.parts[recurrence_part::value]);
  p.delta = p.normalise = true;
  p.offsets = pointer<const int64_t>(call.offsets);
  p.sequences = 2;
  const Array direct = arrays.zeros({1, kHeads, kTokens, kValueDepth});
  kernels::recurrence_forward<float>(p, {view<float, float>(direct), nullptr, nullptr}, 1);
  EXPECT_EQ(numbers_of(output), numbers_of(direct));
  call.parts[recurrence_part::decay] = arrays.drawn({1, kHeads, kTokens, 2});
  EXPECT_ANY_THROW(recurrence_forward(call, output, last, {}, 1));
}

TEST(Shim, ComputesTheConvolution) {
  Arrays arrays;
  ConvolutionCall call{
      arrays.drawn({2, 6, 5}), arrays.drawn({5, 3}), {}, arrays.drawn({2, 2, 5}), true};
  const Array output = arrays.zeros({2, 6, 5}), last = arrays.zeros({2, 2, 5});
  convolution_forward(call, output, last, 1);
  const std::vector<float> x = numbers_of(call.input), w = numbers_of(call.weight);
  const std::vector<float> state = numbers_of(call.state), y = numbers_of(output);
  for (size_t c = 0; c < 5; ++c) {
    // The first token of the first sequence: two numbers of the state and one input.
    const double z = w[c * 3] * state[c] + w[c * 3 + 1] * state[5 + c] + w[c * 3 + 2] * x[c];
    EXPECT_NEAR(y[c], z / (1 + std::exp(-z)), 1e-5);
  }
  call.weight = arrays.drawn({4, 3});
  EXPECT_THAT([&] { convolution_forward(call, output, last, 1); },
              ThrowsMessage<Error>(HasSubstr("weight has shape [4, 3]")));
}

}  // namespace
}  // namespace shim_test
}  // namespace attend::shim
