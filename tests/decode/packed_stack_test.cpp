#include "attend/decode/packed_stack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "attend/decode/packed_state-inl.h"
#include "attend/kernels/bfloat16_products.h"
#include "attend/kernels/storage.h"

namespace attend {
namespace packed_stack_test {

using at::Tensor;

Tensor rounded(const Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); }

// One layer of self-attention only, so that rounding in its caches can be followed to the output.
TransformerStackConfig attention_alone(int64_t key_heads) {
  TransformerStackConfig config{
      .layers = 1, .depth = 40, .self = {{.heads = 4, .key_heads = key_heads}}};
  config.self[0].choices.scope = "causal";
  config.feed_forward = 8;
  return config;
}

struct Stacks {
  explicit Stacks(const TransformerStackConfig& config) {
    torch::manual_seed(6);
    plain = std::make_shared<TransformerStack>(config);
    plain->eval();
    const torch::NoGradGuard no_gradient;
    auto all = plain->named_parameters();
    all["layer0_feed_forward.output.weight"].zero_();
    packed = std::make_unique<PackedStack>(*plain, WeightType::bfloat16);
    for (auto& each : all)
      if (each.value().dim() == 2) each.value().copy_(rounded(each.value()));
  }

  Tensor map(const std::string& part, const Tensor& x) const {
    const auto all = plain->named_parameters();
    return at::linear(x, all["layer0_self." + part + ".weight"],
                      all["layer0_self." + part + ".bias"]);
  }

  // Bound of the difference from float32 output y [B, T, depth]. With u = 2^-9, rounding moves a
  // value by u max |v| and a score by d = u scale sum |q k|. Weights change by a factor of at most
  // e^2d. The sums of |output| then scale the error. The last normalisation divides by a deviation
  // s and scales it by (2 + |y|) / s.
  Tensor bound(const Tensor& x, const Tensor& y, int64_t key_heads) const {
    constexpr double u = 0x1p-9;
    const double scale = 1 / std::sqrt(10.0);
    const Tensor in = at::layer_norm(x, {40});
    const auto of_heads = [&](const char* part, int64_t heads) {
      const Tensor apart = map(part, in).unflatten(2, {heads, 10}).transpose(1, 2);
      return apart.repeat_interleave(4 / heads, 1).to(at::kDouble);
    };
    const Tensor query = of_heads("query", 4), key = of_heads("key", key_heads),
                 value = of_heads("value", key_heads);
    const Tensor moved =
        (at::matmul(query.abs(), key.abs().transpose(2, 3)) * scale * u).amax(-1, true);
    const Tensor later = at::ones({x.size(1), x.size(1)}).triu(1).to(at::kBool);
    const Tensor scores = at::matmul(query, key.transpose(2, 3)) * scale;
    const Tensor weights = scores.masked_fill(later, -INFINITY).softmax(-1);
    const auto together = [](const Tensor& each) { return each.transpose(1, 2).flatten(2); };
    const Tensor context =
        together(at::matmul(weights, value.abs()) * (u + at::expm1(2 * moved) * (1 + u)));
    const Tensor output = plain->named_parameters()["layer0_self.output.weight"].to(at::kDouble);
    const Tensor added = at::matmul(context, output.abs().t()).amax(-1, true);
    const Tensor read = x + map("output", together(at::matmul(weights, value)).to(at::kFloat));
    const Tensor deviation = read.std(-1, false, true).to(at::kDouble) - 2 * added;
    // Float32 itself: sums of some tens of terms.
    return (2 + y.abs().to(at::kDouble)) * added / deviation + 1e-5;
  }

  std::shared_ptr<TransformerStack> plain;
  std::unique_ptr<PackedStack> packed;
};

TEST(PackedStack, OfBFloat16StepsAsLibTorchOnRoundedWeights) {
  for (const int64_t key_heads : {4, 2}) {
    const Stacks stacks(attention_alone(key_heads));
    const torch::NoGradGuard no_gradient;
    constexpr int64_t batch = 3, steps = 37;  // more than one block
    const Tensor x = 2 * torch::randn({batch, steps, 40});
    const Tensor whole = stacks.plain->forward(x, {}, {}, {});
    const Tensor bound = stacks.bound(x, whole, key_heads);
    const auto state = stacks.packed->start({}, batch);
    const auto compare = [&](int64_t first, int64_t count) {
      const Tensor given = x.narrow(1, first, count);
      const auto vectors = stacks.packed->step(count == 1 ? given.squeeze(1).contiguous() : given,
                                               *state, /*with_weights=*/false);
      const Tensor got = at::from_blob(const_cast<float*>(vectors.data), {batch, count, 40},
                                       {count * vectors.stride, vectors.stride, 1}, at::kFloat);
      const Tensor off = (got - whole.narrow(1, first, count)).abs().to(at::kDouble);
      EXPECT_TRUE((off <= bound.narrow(1, first, count)).all().item<bool>()) << off.max();
      return off.max().item<double>();
    };
    compare(0, 5);  // a prefix of 5 tokens at once
    double largest = 0;
    for (int64_t t = 5; t < steps; ++t) largest = std::max(largest, compare(t, 1));
    EXPECT_GT(largest, 0);
    EXPECT_LT(bound.max().item<double>(), 0.5);
  }
}

// Steps of every recurrence, between layers that attend, as LibTorch's.
struct Steps {
  explicit Steps(const RecurrenceRow& row)
      : stack(TransformerStackConfig{.layers = 3,
                                     .depth = 40,
                                     .self = {{.choices = {.scope = "causal"}, .heads = 4}},
                                     .recurrences = {&row, nullptr, &row},
                                     .feed_forward = 8}) {
    torch::manual_seed(6);
    const torch::NoGradGuard no_gradient;
    for (Tensor& each : stack.parameters()) each.copy_(0.3 * torch::randn_like(each));
    stack.eval();
    packed.emplace(stack);
  }

  // The next positions of each hypothesis; x [N, T, 40].
  Tensor step(const Tensor& x, PackedStack::State& state) const {
    const int64_t count = x.size(1);
    const auto vectors =
        packed->step(count == 1 ? x.squeeze(1).contiguous() : x, state, /*with_weights=*/true);
    EXPECT_FALSE(vectors.weights.defined());  // the last layer does not attend
    return at::from_blob(const_cast<float*>(vectors.data), {x.size(0), count, 40},
                         {count * vectors.stride, vectors.stride, 1}, at::kFloat)
        .clone();
  }

  TransformerStack stack;
  std::optional<PackedStack> packed;
};

TEST(PackedStack, StepsRecurrencesAsLibTorch) {
  const torch::NoGradGuard no_gradient;
  for (const RecurrenceRow& row : recurrence_table()) {
    SCOPED_TRACE(row.name);
    if (!PackedRecurrence::takes(row)) continue;
    Steps steps(row);
    const Tensor x = torch::randn({3, 40, 40});
    const Tensor whole = steps.stack.forward(x, {}, {}, {});
    const auto state = steps.packed->start({}, 3);
    std::vector<Tensor> parts = {steps.step(x.narrow(1, 0, 5), *state)};
    for (int64_t t = 5; t < 40; ++t) parts.push_back(steps.step(x.narrow(1, t, 1), *state));
    EXPECT_TRUE(at::allclose(at::cat(parts, 1), whole, 1e-4, 1e-4));
  }
}

// Rows move and join without a change of bits.
TEST(PackedStack, MovesAndJoinsStatesOfRecurrences) {
  const torch::NoGradGuard no_gradient;
  for (const char* name : {"retention", "gated_delta"}) {
    SCOPED_TRACE(name);
    const Steps steps(recurrence_row(name));
    const Tensor x = torch::randn({3, 12, 40});
    const auto alone = [&](int64_t row, int64_t count) {
      const auto state = steps.packed->start({}, 1);
      Tensor last;
      for (int64_t t = 0; t < count; ++t)
        last = steps.step(x.narrow(0, row, 1).narrow(1, t, 1), *state);
      return last;
    };
    const auto state = steps.packed->start({}, 3), late = steps.packed->start({}, 1);
    for (int64_t t = 0; t < 7; ++t) steps.step(x.narrow(1, t, 1), *state);
    for (int64_t t = 0; t < 3; ++t) steps.step(x.narrow(0, 1, 1).narrow(1, t, 1), *late);
    state->reorder(torch::tensor({2, 0, 2}));
    state->append(*late);
    const Tensor next = at::cat({x[2][7], x[0][7], x[2][7], x[1][3]}).view({4, 1, 40});
    const Tensor found = steps.step(next, *state);
    EXPECT_TRUE(found[0].equal(alone(2, 8)[0]));
    EXPECT_TRUE(found[1].equal(alone(0, 8)[0]));
    EXPECT_TRUE(found[2].equal(found[0]));
    EXPECT_TRUE(found[3].equal(alone(1, 4)[0]));
  }
}

// Every map of an encoder's layer reads rounded numbers if the processor multiplies bfloat16. Sums
// in another order than LibTorch's may be rounded to the neighbour, 2^-8 away. Few of the 40 or 8
// numbers of a sum are.
TEST(PackedStack, OfBFloat16EncodesAsLibTorchOnRoundedNumbers) {
  TransformerStackConfig config = attention_alone(4);
  config.self[0].choices.scope = "all";
  const Stacks stacks(config);
  const torch::NoGradGuard no_gradient;
  const bool rounds = kernels::bfloat16_kernels() != nullptr;
  const auto read = [&](const Tensor& x) { return rounds ? rounded(x) : x; };
  const Tensor x = 2 * torch::randn({3, 21, 40});
  const Tensor in = read(at::layer_norm(x, {40}));
  const auto of_heads = [&](const char* part) {
    return stacks.map(part, in).unflatten(2, {4, 10}).transpose(1, 2);
  };
  const Tensor scores = at::matmul(of_heads("query"), of_heads("key").transpose(2, 3));
  const Tensor context = at::matmul((scores / std::sqrt(10.0)).softmax(-1), of_heads("value"));
  const Tensor attended = x + stacks.map("output", read(context.transpose(1, 2).flatten(2)));
  // The feed-forward network adds only its bias.
  const Tensor bias = stacks.plain->named_parameters()["layer0_feed_forward.output.bias"];
  const Tensor want = at::layer_norm(attended + bias, {40});
  const Tensor got = stacks.packed->encode(x, {});
  EXPECT_LT((got - want).abs().max().item<double>(), 0x1p-8);
  const Tensor whole = stacks.plain->forward(x, {}, {}, {});
  EXPECT_EQ((got - whole).abs().max().item<double>() > 0x1p-12, rounds);
}

// Encodes padded sequences as LibTorch's layers: float32 sums of up to 40 terms of size 1 differ by
// some 2^-24 per layer. Bits of a sequence do not depend on others.
void check_encodes(const TransformerStackConfig& config) {
  torch::manual_seed(6);
  TransformerStack plain(config);
  plain.eval();
  const torch::NoGradGuard no_gradient;
  for (const auto& each : plain.named_parameters())  // buckets begin as 0
    if (each.key().find("table") != std::string::npos) each.value().normal_();
  ASSERT_TRUE(PackedStack::encodes(plain));
  const PackedStack packed(plain);
  const Tensor x = torch::randn({4, 300, 40}), lengths = torch::tensor({300, 1, 8, 59});
  const Tensor got = packed.encode(x, lengths), want = plain.forward(x, lengths, {}, {});
  for (int64_t row = 0; row < 4; ++row) {
    const auto length = lengths[row].item<int64_t>();
    const auto part = [&](const Tensor& all) { return all.narrow(0, row, 1).narrow(1, 0, length); };
    EXPECT_LT((part(got) - part(want)).abs().max().item<double>(), 1e-5);
    EXPECT_TRUE(part(got).equal(packed.encode(part(x), {}))) << "without other sequences";
  }
}

TransformerStackConfig encoder_layers() {
  TransformerStackConfig config = attention_alone(4);
  config.self[0].choices.scope = "all";
  config.layers = 4;
  return config;
}

TEST(PackedStack, EncodesLayersThatShareParameters) {
  TransformerStackConfig config = encoder_layers();
  config.owners = {0, 1, 0, 1};
  check_encodes(config);
}

// As ModernBERT: most layers read a window, and rotate by another base.
TEST(PackedStack, EncodesLayersThatTakeTurns) {
  TransformerStackConfig config = encoder_layers();
  config.gated = true;
  config.activation = HiddenActivation::gelu;
  config.first_norm = false;
  for (const char* scope : {"all", "window:5", "window:2"}) {
    HeadGroup group = config.self[0];
    group.choices.scope = scope;
    group.rotary = true;
    group.rotation.base = scope[0] == 'a' ? 160000 : 100;
    config.self_in_turn.push_back({group});
  }
  check_encodes(config);
}

TEST(PackedStack, EncodesPartsOfHeadsThatRotate) {
  TransformerStackConfig config = encoder_layers();
  config.self[0].key_heads = 2;
  config.self[0].rotary = true;
  config.self[0].rotation.pairs = RotaryPairs::halves;
  config.self[0].rotation.share = 0.4;
  check_encodes(config);
}

// As T5 and MPNet: a bias per distance, of each layer or of the first.
TEST(PackedStack, EncodesBiasesOfDistances) {
  TransformerStackConfig config = encoder_layers();
  for (const bool is_shared : {true, false}) {
    for (const char* bias : {"buckets:8,20", "alibi"}) {
      SCOPED_TRACE(fmt::format("{}, shared: {}", bias, is_shared));
      config.self[0].choices.bias = bias;
      config.shared_bias = is_shared;
      config.norm = is_shared ? NormKind::rms : NormKind::layer;
      check_encodes(config);
    }
  }
}

// Layers of language models step and do not encode: their rows are few.
TEST(PackedStack, DoesNotEncodeCausalLayers) {
  const TransformerStack causal(attention_alone(4));
  EXPECT_TRUE(PackedStack::takes(causal));
  EXPECT_FALSE(PackedStack::encodes(causal));
  TransformerStackConfig config = encoder_layers();
  config.owners = {0, 1, 0, 1};
  EXPECT_FALSE(PackedStack::takes(TransformerStack(config)));
  config = encoder_layers();
  config.self[0].choices.scope = "window:5";
  EXPECT_FALSE(PackedStack::takes(TransformerStack(config)));
}

}  // namespace packed_stack_test
}  // namespace attend
