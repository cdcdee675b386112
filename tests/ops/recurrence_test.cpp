// Tests of linear_recurrence: kernels against tensor operations, derivatives against differences,
// and errors.
#include "attend/ops/recurrence.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/ops/differences.h"

namespace attend::reference {
namespace recurrence_test {

using at::Tensor;

struct Drawn {
  Tensor query, key, value;
  RecurrenceSpec spec;
};

struct Size {
  int64_t batch = 2, heads = 4, key_heads = 2, tokens = 21, depth = 5, value_depth = 3;
};

Drawn drawn_for(const RecurrenceRow& row, const Size& s = {}, at::ScalarType type = at::kDouble) {
  const auto generator = at::detail::createCPUGenerator(7);
  const auto normal = [&](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::TensorOptions(at::kDouble)).to(type);
  };
  const auto uniform = [&](at::IntArrayRef sizes) {
    return at::rand(sizes, generator, at::TensorOptions(at::kDouble)).to(type);
  };
  Drawn x{normal({s.batch, s.key_heads, s.tokens, s.depth}),
          normal({s.batch, s.key_heads, s.tokens, s.depth}),
          normal({s.batch, s.heads, s.tokens, s.value_depth}),
          {}};
  if (row.decay == DecayKind::head) x.spec.decay = -uniform({s.heads});
  if (row.decay == DecayKind::token) x.spec.decay = -uniform({s.batch, s.heads, s.tokens});
  if (row.decay == DecayKind::row) x.spec.decay = -uniform({s.batch, s.heads, s.tokens, s.depth});
  if (row.strength) x.spec.strength = uniform({s.batch, s.heads, s.tokens});
  if (row.bonus) x.spec.bonus = normal({s.heads, s.depth});
  x.spec.delta = row.delta;
  x.spec.l2_normalise = row.unit_keys;
  x.spec.initial = normal({s.batch, s.heads, s.depth, s.value_depth});
  return x;
}

Tensors inputs_of(const Drawn& x) {
  Tensors inputs = {x.query, x.key, x.value, x.spec.initial};
  for (const Tensor& each : {x.spec.decay, x.spec.strength, x.spec.bonus})
    if (each.defined()) inputs.push_back(each);
  return inputs;
}

// The inputs of inputs_of() in the spec of `like`.
RecurrenceResult computed(const Drawn& like, const Tensors& inputs, bool composed = false) {
  RecurrenceSpec spec = like.spec;
  spec.initial = inputs[3];
  size_t next = 4;
  if (spec.decay.defined()) spec.decay = inputs[next++];
  if (spec.strength.defined()) spec.strength = inputs[next++];
  if (spec.bonus.defined()) spec.bonus = inputs[next++];
  return (composed ? composed_recurrence : linear_recurrence)(inputs[0], inputs[1], inputs[2],
                                                              spec);
}

std::vector<std::string> names_of(const Drawn& x) {
  std::vector<std::string> names = {"query", "key", "value", "initial"};
  if (x.spec.decay.defined()) names.emplace_back("decay");
  if (x.spec.strength.defined()) names.emplace_back("strength");
  if (x.spec.bonus.defined()) names.emplace_back("bonus");
  return names;
}

Function loss_of(const Drawn& x) {
  return [x](const Tensors& inputs) {
    const auto [output, state] = computed(x, inputs);
    return output.sin().sum() + state.square().sum();
  };
}

TEST(LinearRecurrence, EqualsTensorOperations) {
  for (const RecurrenceRow& row : recurrence_table()) {
    SCOPED_TRACE(row.name);
    const Drawn x = drawn_for(row);
    const auto [output, state] = computed(x, inputs_of(x));
    const auto [plain, last] = computed(x, inputs_of(x), true);
    EXPECT_TRUE(at::allclose(output, plain, 1e-10, 1e-12));
    EXPECT_TRUE(at::allclose(state, last, 1e-10, 1e-12));
  }
}

TEST(LinearRecurrence, HasGradients) {
  for (const RecurrenceRow& row : recurrence_table()) {
    SCOPED_TRACE(row.name);
    const Drawn x = drawn_for(row, {.batch = 1, .heads = 2, .key_heads = 1, .tokens = 7});
    expect_gradients(loss_of(x), inputs_of(x), names_of(x));
  }
}

TEST(LinearRecurrence, HasSecondGradients) {
  for (const RecurrenceRow& row : recurrence_table()) {
    SCOPED_TRACE(row.name);
    const Drawn x = drawn_for(row, {.batch = 1, .heads = 2, .key_heads = 1, .tokens = 5});
    expect_second_gradients(loss_of(x), inputs_of(x), names_of(x));
  }
}

TEST(LinearRecurrence, ContinuesFromItsState) {
  for (const RecurrenceRow& row : recurrence_table()) {
    SCOPED_TRACE(row.name);
    const Drawn x = drawn_for(row);
    const auto whole = linear_recurrence(x.query, x.key, x.value, x.spec);
    Tensor state = x.spec.initial;
    std::vector<Tensor> outputs;
    for (const auto& [first, count] :
         {std::pair<int64_t, int64_t>{0, 9}, {9, 1}, {10, 3}, {13, 8}}) {
      const auto part = [&, first = first, count = count](const Tensor& t) {
        return t.defined() && t.dim() > 1 ? t.narrow(2, first, count) : t;
      };
      RecurrenceSpec spec = x.spec;
      spec.decay = part(spec.decay);
      spec.strength = part(spec.strength);
      spec.initial = state;
      const auto next = linear_recurrence(part(x.query), part(x.key), part(x.value), spec);
      outputs.push_back(next.output);
      state = next.state;
    }
    EXPECT_TRUE(at::allclose(whole.output, at::cat(outputs, 2), 1e-10, 1e-12));
    EXPECT_TRUE(at::allclose(whole.state, state, 1e-10, 1e-12));
  }
}

TEST(LinearRecurrence, HasWeights) {
  for (const RecurrenceRow& row : recurrence_table()) {
    SCOPED_TRACE(row.name);
    Drawn x = drawn_for(row);
    x.spec.initial = Tensor();
    const Tensor weights = recurrence_weights(x.query, x.key, x.spec, x.value.size(1));
    const Tensor output = linear_recurrence(x.query, x.key, x.value, x.spec).output;
    EXPECT_TRUE(at::allclose(at::matmul(weights, x.value), output, 1e-10, 1e-12));
    EXPECT_TRUE(at::equal(weights, weights.tril()));
  }
}

TEST(LinearRecurrence, TakesRaggedBatches) {
  Drawn x = drawn_for(recurrence_row("gated_delta"), {.batch = 1});
  x.spec.offsets = at::tensor({0, 4, 4, 21}, at::kLong);
  x.spec.initial = at::randn({3, 4, 5, 3}, at::kDouble);
  const auto [output, state] = computed(x, inputs_of(x));
  const auto [plain, last] = computed(x, inputs_of(x), true);
  EXPECT_TRUE(at::allclose(output, plain, 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(state, last, 1e-10, 1e-12));
  const Tensors inputs = leaves(inputs_of(x));
  const auto loss = [](const RecurrenceResult& r) {
    return r.output.sin().sum() + r.state.square().sum();
  };
  const Tensors fused = gradients(loss(computed(x, inputs)), inputs, false);
  const Tensors composed = gradients(loss(computed(x, inputs, true)), inputs, false);
  for (size_t i = 0; i < fused.size(); ++i)
    EXPECT_TRUE(at::allclose(fused[i], composed[i], 1e-9, 1e-11)) << names_of(x)[i];
}

// A loop over the tokens of ragged sequences; the kernels and the operations share with_bonus().
TEST(LinearRecurrence, ReadsBeforeTheUpdateWithABonus) {
  for (const bool normalise : {false, true}) {
    Drawn x = drawn_for(recurrence_row("rwkv6"), {.batch = 1});
    x.spec.offsets = at::tensor({0, 4, 4, 21}, at::kLong);
    x.spec.initial = at::randn({3, 4, 5, 3}, at::kDouble);
    x.spec.strength = at::rand({1, 4, 21}, at::kDouble);
    x.spec.l2_normalise = normalise;
    const auto [output, last] = computed(x, inputs_of(x));
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t s = 0; s < 3; ++s) {
        Tensor state = x.spec.initial[s][h];
        const auto* bounds = x.spec.offsets.data_ptr<int64_t>();
        for (int64_t t = bounds[s]; t < bounds[s + 1]; ++t) {
          Tensor query = x.query[0][h / 2][t], key = x.key[0][h / 2][t];
          if (normalise) {
            query = query / (query.dot(query) + 1e-6).sqrt();
            key = key / (key.dot(key) + 1e-6).sqrt();
          }
          const Tensor update = at::outer(key, x.spec.strength[0][h][t] * x.value[0][h][t]);
          const Tensor read = state + x.spec.bonus[h].unsqueeze(1) * update;
          EXPECT_TRUE(at::allclose(output[0][h][t], at::mv(read.t(), query) / std::sqrt(5.0), 1e-10,
                                   1e-12));
          state = x.spec.decay[0][h][t].exp().unsqueeze(1) * state + update;
        }
        EXPECT_TRUE(at::allclose(last[s][h], state, 1e-10, 1e-12));
      }
  }
}

TEST(LinearRecurrence, TakesAnyLayoutAndType) {
  const RecurrenceRow& row = recurrence_row("kda");
  const Drawn x = drawn_for(row);
  const auto expected = computed(x, inputs_of(x), true).output;
  // [B, T, H, D] in memory, as a projection gives it, and a negative.
  const auto turned = [](const Tensor& t) {
    return t.transpose(1, 2).contiguous().transpose(1, 2);
  };
  Tensors inputs = inputs_of(x);
  for (const size_t i : {0, 1, 2}) inputs[i] = turned(inputs[i]);
  inputs[0] = at::_neg_view(-inputs[0]);
  EXPECT_TRUE(at::allclose(computed(x, inputs).output, expected, 1e-10, 1e-12));
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    Drawn y = drawn_for(row, {}, type);
    y.spec.decay = y.spec.decay.to(at::kFloat);
    const auto result = computed(y, inputs_of(y));
    EXPECT_EQ(result.output.scalar_type(), type);
    EXPECT_EQ(result.state.scalar_type(), at::kFloat);
    const double tolerance = type == at::kFloat ? 1e-5 : type == at::kHalf ? 0.02 : 0.1;
    EXPECT_TRUE(at::allclose(result.output.to(at::kDouble), expected, tolerance, tolerance));
  }
}

TEST(LinearRecurrence, TakesEmptySequences) {
  const Drawn x = drawn_for(recurrence_row("gated_delta"), {.tokens = 0});
  const auto [output, state] = computed(x, inputs_of(x));
  EXPECT_EQ(output.numel(), 0);
  EXPECT_TRUE(at::equal(state, x.spec.initial));
}

template <class Change>
std::string message(const Change& change) {
  Drawn x = drawn_for(recurrence_row("gated_delta"));
  change(x);
  try {
    linear_recurrence(x.query, x.key, x.value, x.spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LinearRecurrence, RefusesWhatDoesNotFit) {
  using ::testing::HasSubstr;
  const auto expect = [](auto change, const char* text) {
    EXPECT_THAT(message(change), HasSubstr(text));
  };
  EXPECT_EQ(message([](Drawn&) {}), "");
  expect([](Drawn& x) { x.query = Tensor(); }, "query is undefined");
  expect([](Drawn& x) { x.value = x.value[0]; }, "value has shape [4, 21, 3]; it must have 4 axes");
  expect([](Drawn& x) { x.key = x.key.narrow(2, 0, 20); },
         "key has shape [2, 2, 20, 5]; it must have [2, 2, 21, 5]");
  expect([](Drawn& x) { x.query = x.query.narrow(3, 0, 4); }, "query has shape [2, 2, 21, 4]");
  expect([](Drawn& x) { x.value = x.value.narrow(1, 0, 3); }, "must divide the 3 heads");
  expect([](Drawn& x) { x.key = x.key.to(at::kFloat); }, "key is Float and value is Double");
  expect(
      [](Drawn& x) {
        x.query = x.key = x.value = at::ones({1, 1, 1, 1}, at::kInt);
      },
      "query is Int");
  expect([](Drawn& x) { x.spec.decay = -x.spec.decay; }, "above 0 or NaN");
  expect([](Drawn& x) { x.spec.decay = x.spec.decay * NAN; }, "above 0 or NaN");
  expect([](Drawn& x) { x.spec.decay = x.spec.decay[0]; }, "decay has shape [4, 21]");
  expect([](Drawn& x) { x.spec.strength = x.spec.strength * NAN; }, "strength has NaN");
  expect([](Drawn& x) { x.spec.strength = x.spec.strength.unsqueeze(-1); },
         "strength has shape [2, 4, 21, 1]; it must have [2, 4, 21]");
  expect([](Drawn& x) { x.spec.initial = x.spec.initial[0]; }, "initial has shape [4, 5, 3]");
  expect(
      [](Drawn& x) {
        x.spec.bonus = at::ones({4, 3}, at::kDouble);
      },
      "bonus has shape [4, 3]; it must have [4, 5]");
  expect(
      [](Drawn& x) {
        x.spec.bonus = at::ones({4, 5}, at::kDouble);
      },
      "bonus is given with the delta rule");
  expect([](Drawn& x) { x.spec.scale = NAN; }, "scale is nan");
  expect([](Drawn& x) { x.spec.offsets = at::tensor({0, 21}, at::kLong); }, "2 batch entries");
  expect([](Drawn& x) { x.spec.offsets = at::tensor({0.0, 21.0}); }, "they must be int64");
}

TEST(LinearRecurrence, RefusesOffsetsThatFall) {
  Drawn x = drawn_for(recurrence_row("linear"), {.batch = 1});
  x.spec.initial = Tensor();
  x.spec.offsets = at::tensor({0, 9, 8, 21}, at::kLong);
  EXPECT_THROW(linear_recurrence(x.query, x.key, x.value, x.spec), Error);
}

TEST(RecurrenceTable, SuggestsNames) {
  EXPECT_EQ(recurrence_row("kda").decay, DecayKind::row);
  EXPECT_THROW(recurrence_row("gated-delta"), Error);
}

}  // namespace recurrence_test
}  // namespace attend::reference
