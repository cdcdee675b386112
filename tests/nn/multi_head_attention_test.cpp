#include "attend/nn/multi_head_attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "attend/nn/attention_trace.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"
#include "tests/support/autocast.h"

namespace attend {
namespace multi_head_attention_test {

using at::Tensor;

// For equal sums in another order: some units in the last place of numbers from 1 to 100.
bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

Pass noise_of(uint64_t seed) {
  return {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
}

// Output of a module and its attention calls.
struct Seen {
  Tensor output;
  std::vector<TracedAttention> attentions;

  Tensor weights(const std::vector<int64_t>& heads = {}) const {
    return attentions.at(0).weights(heads);
  }
};

template <class Compute>
Seen seen(const Compute& compute, const Pass& pass = {}) {
  AttentionTrace trace;
  const Tensor output = compute(pass.watched_by(trace));
  return {output, trace.attentions()};
}

Seen seen_forward(MultiHeadAttention& module, const Tensor& query, const Tensor& source,
                  const Tensor& lengths = {}, const Pass& pass = {}) {
  return seen([&](const Pass& watched) { return module.forward(query, source, lengths, watched); },
              pass);
}

// In float64, with nonzero biases.
std::shared_ptr<MultiHeadAttention> module_of(const MultiHeadConfig& config) {
  torch::manual_seed(1);
  auto module = std::make_shared<MultiHeadAttention>(config);
  module->to(torch::kDouble);
  torch::NoGradGuard no_gradient;
  for (const auto& item : module->named_parameters())
    if (item.key().ends_with(".bias")) item.value().copy_(torch::randn_like(item.value()));
  return module;
}

MultiHeadConfig scaled_dot(const char* scope, int64_t heads, int64_t key_heads = 0) {
  return {.depth = 12,
          .groups = {{.choices = {.scope = scope}, .heads = heads, .key_heads = key_heads}}};
}

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

// Vaswani et al. 2017, 3.2, for one sequence, head by head.
Tensor by_formula(const torch::nn::Module& module, const Tensor& query, const Tensor& source,
                  int64_t heads, int64_t key_heads, bool causal) {
  const auto parameters = module.named_parameters();
  const auto linear = [&](const std::string& name, const Tensor& x) {
    return at::matmul(x, parameters[name + ".weight"].t()) + parameters[name + ".bias"];
  };
  const Tensor q = linear("query", query), k = linear("key", source), v = linear("value", source);
  const int64_t depth = q.size(1) / heads;
  std::vector<Tensor> contexts;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t shared = h / (heads / key_heads);
    Tensor scores = at::matmul(q.slice(1, h * depth, (h + 1) * depth),
                               k.slice(1, shared * depth, (shared + 1) * depth).t()) /
                    std::sqrt(static_cast<double>(depth));
    if (causal)
      scores = scores + at::full_like(scores, -std::numeric_limits<double>::infinity()).triu(1);
    contexts.push_back(
        at::matmul(scores.softmax(1), v.slice(1, shared * depth, (shared + 1) * depth)));
  }
  return linear("output", at::cat(contexts, 1));
}

TEST(MultiHeadAttention, IsTheFormula) {
  for (const int64_t key_heads : {4, 2, 1}) {
    for (const int64_t length : {1, 3, 59}) {
      const auto module = module_of(scaled_dot("causal", 4, key_heads));
      const Tensor x = random({2, length, 12});
      const Tensor output = module->forward(x, x);
      for (int64_t b = 0; b < 2; ++b)
        EXPECT_TRUE(close(output[b], by_formula(*module, x[b], x[b], 4, key_heads, true)));
    }
  }
}

TEST(MultiHeadAttention, CrossesFromAnotherDepthWithPadding) {
  const auto module = module_of(
      {.depth = 7, .source_depth = 5, .groups = {{.heads = 2}, {.heads = 1}}, .head_depth = 3});
  const Tensor query = random({3, 4, 7}), source = random({3, 6, 5});
  const std::vector<int64_t> lengths = {6, 1, 4};
  const Tensor output = module->forward(query, source, torch::tensor(lengths));
  for (int64_t b = 0; b < 3; ++b) {
    const Tensor own = source[b].slice(0, 0, lengths[static_cast<size_t>(b)]);
    EXPECT_TRUE(close(output[b], by_formula(*module, query[b], own, 3, 3, false)));
  }
}

TEST(MultiHeadAttention, IsThatOfLibTorch) {
  const auto module = module_of({.depth = 12, .groups = {{.heads = 4}}});
  torch::nn::MultiheadAttention theirs(12, 4);
  theirs->to(torch::kDouble);
  const auto own = module->named_parameters();
  {
    torch::NoGradGuard no_gradient;
    for (const char* kind : {"weight", "bias"}) {
      const auto parameter = [&](const char* name) {
        return own[fmt::format("{}.{}", name, kind)];
      };
      theirs->named_parameters()[fmt::format("in_proj_{}", kind)].copy_(
          at::cat({parameter("query"), parameter("key"), parameter("value")}));
      theirs->named_parameters()[fmt::format("out_proj.{}", kind)].copy_(parameter("output"));
    }
  }
  const Tensor query = random({2, 5, 12}), source = random({2, 7, 12});
  const Tensor padding = torch::tensor({{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 1, 1, 1}});
  const auto [output, weights] =
      theirs->forward(query.transpose(0, 1), source.transpose(0, 1), source.transpose(0, 1),
                      padding.to(at::kBool), /*need_weights=*/true);
  const Seen result = seen_forward(*module, query, source, torch::tensor({7, 3}));
  EXPECT_TRUE(close(result.output, output.transpose(0, 1)));
  EXPECT_TRUE(close(result.weights().mean(1), weights));
}

// A mechanism's choices with its other settings.
struct Row {
  std::string name;
  HeadGroup group;
};

std::string test_name(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

// Every row of the tables, for queries that see no later key.
std::vector<Row> causal_rows() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const HeadGroup& group) {
    rows.push_back({test_name(name), group});
    rows.back().group.heads = 2;
    rows.back().group.choices.scope += rows.back().group.choices.scope == "all" ? "" : " & causal";
    if (group.choices.scope == "all") rows.back().group.choices.scope = "causal";
  };
  for (const ScoreRow& row : score_table()) {
    add(std::string(row.name), {.choices = {.score = std::string(row.name)}, .key_heads = 1});
    add(std::string(row.name) + " own keys", {.choices = {.score = std::string(row.name)}});
  }
  for (const NormaliserRow& row : normaliser_table()) {
    // Linear attention requires nonnegative scores.
    const char* score = row.name == "linear" ? "elu_features" : "scaled_dot";
    add(std::string(row.name) + " normaliser",
        {.choices = {.score = score, .normaliser = std::string(row.name)}, .key_heads = 1});
  }
  for (const char* bias :
       {"alibi", "buckets:8", "relative_keys:2", "sink", "alibi + buckets:4", "kerple_log",
        "kerple_power", "sandwich:8", "forget", "cope:5", "fire:6", "forget + alibi + sink",
        "content_to_position:3 + position_to_content:2,9"})
    add(bias, {.choices = {.bias = bias}});
  add("additive and relative keys", {.choices = {.score = "additive", .bias = "relative_keys:2"}});
  for (const char* scope : {"window:2", "window:3 & prefix:9", "global:2"})
    add(scope, {.choices = {.scope = scope}});
  add("rotary", {.rotary = true});
  add("gated", {.key_heads = 1, .gated = true});
  add("differential", {.differential = true});
  add("differential rotary", {.choices = {.bias = "alibi"}, .rotary = true, .differential = true});
  add("latent", {.latent_depth = 3, .rotary_depth = 2});
  add("latent of large vectors", {.choices = {.bias = "alibi"}, .latent_depth = 7});
  for (const char* bias : {"relative_keys:2", "cope:5", "position_to_content:2"})
    add(std::string("latent with ") + bias,
        {.choices = {.bias = bias}, .latent_depth = 3, .rotary_depth = 2});
  add("sparse branches",
      {.choices = {.scope = "causal"}, .branches = {.block = 2, .count = 2, .window = 3}});
  add("selective", {.choices = {.scope = "causal", .bias = "alibi"},
                    .key_heads = 1,
                    .rotary = true,
                    .selective = true});
  add("segments",
      {.choices = {.scope = "causal"}, .key_heads = 1, .rotary = true, .memory_segment = 3});
  add("mixed scores", {.choices = {.scope = "causal"},
                       .key_heads = 1,
                       .rotary = true,
                       .mix = {.queries = 3, .keys = 5, .heads = 2}});
  add("indexer", {.key_heads = 1, .indexer = {.keys = 3, .heads = 2, .depth = 4}});
  add("top blocks", {.choices = {.scope = "top_blocks:3,2"}, .key_heads = 1, .rotary = true});
  add("halves", {.rotary = true, .rotation = {.pairs = RotaryPairs::halves}});
  add("part", {.rotary = true, .rotation = {.share = 0.5}});
  add("yarn",
      {.key_heads = 1, .rotary = true, .rotation = {.scaling = parse_rotary_scaling("yarn:4,8")}});
  add("rotary of general", {.choices = {.score = "general"}, .key_heads = 1, .rotary = true});
  return rows;
}

class EveryRow : public testing::TestWithParam<Row> {
 protected:
  static MultiHeadConfig config(bool source = false) {
    return {.depth = 8,
            .source_depth = source ? 5 : 0,
            .groups = {GetParam().group},
            .attention_depth = 3,
            .keys = 11};
  }
};

INSTANTIATE_TEST_SUITE_P(Tables, EveryRow, testing::ValuesIn(causal_rows()),
                         [](const auto& info) { return info.param.name; });

// The operator on projected heads, with parameters by name.
TEST_P(EveryRow, IsTheOperator) {
  const HeadGroup& group = GetParam().group;
  const bool has_form = group.gated || group.differential || group.latent_depth > 0 ||
                        group.branches.block > 0 || group.indexer.keys > 0;
  if (group.rotary || has_form || !group.choices.bias.empty()) return;
  const auto module = module_of(config());
  auto parameters = module->named_parameters();
  parameters.update(module->named_buffers());
  const Tensor x = random({2, 9, 8});
  const auto heads = [&](const char* name) {
    const Tensor projected = at::matmul(x, parameters[fmt::format("{}.weight", name)].t()) +
                             parameters[fmt::format("{}.bias", name)];
    return projected.view({2, 9, -1, 4}).transpose(1, 2);
  };
  Parameters of_score;
  for (const ParameterRow& row : score_row(group.choices.score).parameters)
    of_score.emplace(row.name, parameters["group0." + std::string(row.name)]);
  AttentionSpec spec{.score = Score(group.choices.score, of_score),
                     .scope = parse_scope(group.choices.scope),
                     .normaliser = Normaliser(group.choices.normaliser)};
  if (const Tensor* scale = parameters.find("group0.scalable_scale"))
    spec.normaliser = spec.normaliser.with_parameter(*scale);
  const auto [context, lse] = attention(heads("query"), heads("key"), heads("value"), spec);
  const Tensor expected =
      at::matmul(context.transpose(1, 2).flatten(2), parameters["output.weight"].t()) +
      parameters["output.bias"];
  EXPECT_TRUE(close(module->forward(x, x), expected));
}

TEST_P(EveryRow, StepByStepIsTheWholeSequence) {
  const auto module = module_of(config());
  const Tensor x = random({3, 11, 8});
  for (const bool training : {true, false}) {
    module->train(training);
    const Tensor whole = module->forward(x, x);
    for (const bool recording : {true, false}) {
      at::AutoGradMode mode(recording);
      MultiHeadState state;
      std::vector<Tensor> outputs = {module->step(x.slice(1, 0, 1), state),
                                     module->step(x.slice(1, 1, 4), state)};
      for (int64_t t = 4; t < 11; ++t) outputs.push_back(module->step(x.slice(1, t, t + 1), state));
      EXPECT_EQ(state.keys(), 11);
      EXPECT_EQ(state.queries(), 11);
      EXPECT_TRUE(close(at::cat(outputs, 1), whole)) << training << recording;
    }
  }
}

// Cross-attention, with the whole source available from the start.
TEST_P(EveryRow, QueryByQueryIsAllAtOnce) {
  MultiHeadConfig changed = config(true);
  AttentionChoices& choices = changed.groups[0].choices;
  if (choices.scope == "causal") choices.scope = "all";
  const auto module = module_of(changed);
  const Tensor query = random({2, 5, 8}), source = random({2, 7, 5});
  const Tensor lengths = torch::tensor({4, 7});
  const Tensor whole = module->forward(query, source, lengths);
  MultiHeadState state = module->prepare(source, lengths);
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < 5; ++t) outputs.push_back(module->read(query.slice(1, t, t + 1), state));
  EXPECT_TRUE(close(at::cat(outputs, 1), whole));
  const Tensor padded = at::constant_pad_nd(source, {0, 0, 0, 2}, 3.0);
  EXPECT_TRUE(close(module->forward(query, padded, lengths), whole));
}

TEST(MultiHeadAttention, PredictsCentresOfAKnownSource) {
  const auto module = module_of(
      {.depth = 8,
       .groups = {{.choices = {.score = "general", .scope = "around:2", .bias = "gaussian"},
                   .heads = 2}}});
  const Tensor query = random({2, 4, 8}), source = random({2, 7, 8});
  const Tensor lengths = torch::tensor({4, 7});
  const Tensor whole = module->forward(query, source, lengths);
  MultiHeadState state = module->prepare(source, lengths);
  for (int64_t t = 0; t < 4; ++t)
    EXPECT_TRUE(close(module->read(query.slice(1, t, t + 1), state), whole.slice(1, t, t + 1)));
}

// Heads of four mechanisms that share nothing.
MultiHeadConfig mixed() {
  return {
      .depth = 10,
      .groups =
          {{.choices = {.score = "additive", .scope = "causal"}, .heads = 2, .key_heads = 1},
           {.choices = {.scope = "causal", .bias = "alibi + sink"}, .heads = 2, .rotary = true},
           {.choices = {.score = "location_sensitive", .scope = "causal"}},
           {.choices = {.score = "cosine", .scope = "window:1 & causal", .normaliser = "sparsemax"},
            .heads = 4,
            .key_heads = 2}},
      .head_depth = 2,
      .attention_depth = 3};
}

// The module of one group, with its slices of all weights.
std::shared_ptr<MultiHeadAttention> part_of(const MultiHeadAttention& whole, size_t index) {
  MultiHeadConfig config = mixed();
  int64_t head = 0, key_head = 0;
  const auto key_heads = [](const HeadGroup& group) {
    return group.key_heads == 0 ? group.heads : group.key_heads;
  };
  for (size_t i = 0; i < index; ++i) {
    head += config.groups[i].heads;
    key_head += key_heads(config.groups[i]);
  }
  const HeadGroup group = config.groups[index];
  config.groups = {group};
  auto part = module_of(config);
  const auto all = whole.named_parameters();
  torch::NoGradGuard no_gradient;
  for (const auto& item : part->named_parameters()) {
    std::string name = item.key();
    if (name.starts_with("group0")) name.replace(0, 6, fmt::format("group{}", index));
    Tensor from = all[name];
    const bool shared = name.starts_with("key") || name.starts_with("value");
    const int64_t first = 2 * (shared ? key_head : head);
    const int64_t count = 2 * (shared ? key_heads(group) : group.heads);
    if (shared || name.starts_with("query")) from = from.slice(0, first, first + count);
    if (name == "output.weight") from = from.slice(1, first, first + count);
    item.value().copy_(from);
  }
  return part;
}

TEST(MultiHeadAttention, MixesHeads) {
  const auto module = module_of(mixed());
  const Tensor x = random({2, 5, 10});
  const Tensor bias = module->named_parameters()["output.bias"];
  Tensor sum = bias.expand({2, 5, 10});
  std::vector<Tensor> weights;
  for (size_t i = 0; i < 4; ++i) {
    const Seen part = seen_forward(*part_of(*module, i), x, x);
    sum = sum + part.output - bias;
    weights.push_back(part.weights());
  }
  const Seen result = seen_forward(*module, x, x);
  EXPECT_TRUE(close(result.output, sum));
  const Tensor all = at::cat(weights, 1);
  ASSERT_EQ(all.size(1), 9);
  EXPECT_TRUE(close(result.weights(), all));
  const std::vector<int64_t> some = {0, 1, 4, 6, 8};
  EXPECT_TRUE(close(result.weights(some), all.index_select(1, torch::tensor(some))));
}

TEST(MultiHeadAttention, GoesOnWithTheHypothesesOfABeam) {
  at::NoGradGuard no_gradient;
  const auto module = module_of(mixed());
  const Tensor x = random({3, 9, 10});
  const Tensor rows = torch::tensor({2, 0, 0, 1});
  MultiHeadState state;
  for (int64_t t = 0; t < 6; ++t) module->step(x.slice(1, t, t + 1), state);
  state.reorder(rows);
  const Tensor taken = x.index_select(0, rows);
  const Tensor tail = random({4, 3, 10});
  const Tensor whole = at::cat({taken.slice(1, 0, 6), tail}, 1);
  const Tensor expected = module->forward(whole, whole);
  for (int64_t t = 0; t < 3; ++t)
    EXPECT_TRUE(
        close(module->step(tail.slice(1, t, t + 1), state), expected.slice(1, 6 + t, 7 + t)));
}

// Keys of other sequences bring their gates along.
TEST(MultiHeadAttention, ReordersGates) {
  at::NoGradGuard no_gradient;
  const auto module = module_of(
      {.depth = 8, .groups = {{.choices = {.scope = "causal", .bias = "forget"}, .heads = 2}}});
  const Tensor x = random({3, 5, 8}), rows = torch::tensor({2, 0, 0, 1});
  MultiHeadState state;
  module->step(x, state);
  state.reorder(rows);
  const Tensor tail = random({4, 3, 8});
  const Tensor whole = at::cat({x.index_select(0, rows), tail}, 1);
  EXPECT_TRUE(close(module->step(tail, state), module->forward(whole, whole).slice(1, 5)));
}

// Half of a key is forgotten after 32 to 1,024 tokens.
TEST(MultiHeadAttention, ForgetsSlowlyAtFirst) {
  const MultiHeadAttention module(
      {.depth = 9, .groups = {{.choices = {.scope = "causal", .bias = "forget"}, .heads = 3}}});
  const Tensor share = module.named_parameters()["gates0.bias"].detach().to(at::kDouble).sigmoid();
  const Tensor tokens = std::log(0.5) / share.log();
  EXPECT_TRUE(at::allclose(tokens, torch::tensor({32.0, 181.02, 1024.0}).to(at::kDouble), 1e-4));
}

// Steps append in spare room: n steps move the held keys only log n times.
TEST(MultiHeadAttention, MovesItsKeysSeldom) {
  at::NoGradGuard no_gradient;
  const auto module = module_of(scaled_dot("causal", 2));
  MultiHeadState state;
  std::set<const void*> places;
  std::vector<Seen> results;  // keeps all alive, so that no address is reused
  for (int64_t t = 0; t < 500; ++t) {
    results.push_back(seen([&](const Pass& pass) {
      return module->step(random({1, 1, 12}), state, pass);
    }));
    places.insert(results.back().attentions[0].calls[0].key.storage().data());
  }
  EXPECT_LE(places.size(), 7);  // 1, 16, 32, ... 512
  // The weights of an early step stay readable.
  const Tensor weights = results[20].weights();
  EXPECT_EQ(weights.size(3), 21);
  EXPECT_TRUE(close(weights.sum(3), at::ones_like(weights.select(3, 0))));
}

TEST(MultiHeadAttention, DropsWeightsByTheGenerator) {
  MultiHeadConfig config = scaled_dot("all", 3);
  config.groups.push_back(config.groups[0]);
  config.dropout = 0.5;
  const auto module = module_of(config);
  const Tensor x = random({2, 5, 12});
  const auto run = [&](const Pass& pass) { return seen_forward(*module, x, x, {}, pass); };
  EXPECT_TRUE(at::equal(run(noise_of(3)).output, run(noise_of(3)).output));
  EXPECT_FALSE(at::equal(run(noise_of(3)).output, run(noise_of(4)).output));
  EXPECT_TRUE(at::equal(run({}).output, run({}).output));
  const Seen result = run(noise_of(5));
  const std::vector<AttentionCall>& calls = result.attentions[0].calls;
  EXPECT_NE(calls[0].spec.dropout.seed, calls[1].spec.dropout.seed);
  // Reported weights are the weights before dropout.
  EXPECT_TRUE(close(result.weights(), run({}).weights()));
}

TEST(MultiHeadAttention, HasGradients) {
  const auto module = module_of(mixed());
  const Tensor x = random({2, 3, 10}), direction = random({2, 3, 10});
  const auto loss = [&](const Tensor& input) {
    return (module->forward(input, input) * direction).sum();
  };
  reference::expect_gradients([&](const reference::Tensors& inputs) { return loss(inputs[0]); },
                              {x}, {"x"});
  reference::expect_parameter_gradients(*module, [&] { return loss(x); });
}

// Through time: trains a recurrent decoder that attends to its own past, step by step.
TEST(MultiHeadAttention, HasTheSameGradientsStepByStep) {
  const auto module = module_of(mixed());
  const Tensor x = random({2, 6, 10}), direction = random({2, 6, 10});
  const auto gradients = [&](const Tensor& output) {
    return reference::gradients((output * direction).sum(), module->parameters(), false);
  };
  const reference::Tensors expected = gradients(module->forward(x, x));
  MultiHeadState state;
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < 6; ++t) outputs.push_back(module->step(x.slice(1, t, t + 1), state));
  const reference::Tensors found = gradients(at::cat(outputs, 1));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(close(found[i], expected[i])) << i;
}

// Under autocast layers return bfloat16 with float32 parameters.
TEST(MultiHeadAttention, TakesAutocast) {
  for (const char* score : {"scaled_dot", "general", "additive", "cosine"}) {
    SCOPED_TRACE(score);
    torch::manual_seed(15);
    MultiHeadAttention module(
        {.depth = 32,
         .groups = {{.choices = {.score = score, .bias = "relative_keys:4"}, .heads = 2}}});
    const Tensor x = torch::randn({2, 7, 32});
    const auto result = [&] {
      const Tensor input = x.clone().requires_grad_();
      const Tensor out = module.forward(input, input);
      return std::pair(out, input);
    };
    const auto [wanted, plain] = result();
    const Tensor slope = torch::randn_like(wanted);
    const Tensor wanted_gradient = torch::autograd::grad({wanted}, {plain}, {slope})[0];
    std::pair<Tensor, Tensor> cast;
    {
      const test::Autocast on;
      cast = result();
    }
    // Three consecutive products of 32 numbers with 8 bits each.
    EXPECT_TRUE(torch::allclose(cast.first.to(torch::kFloat), wanted, 5e-2, 5e-2));
    const Tensor gradient =
        torch::autograd::grad({cast.first}, {cast.second}, {slope.to(cast.first.scalar_type())})[0];
    EXPECT_LT((gradient - wanted_gradient).norm().item<double>(),
              5e-2 * wanted_gradient.norm().item<double>());
  }
}

TEST(MultiHeadAttention, RefusesTheWeightsOfLinearHeads) {
  const auto module = module_of(
      {.depth = 4, .groups = {{}, {.choices = {.score = "elu_features", .normaliser = "linear"}}}});
  const Tensor x = random({1, 3, 4});
  const Seen result = seen_forward(*module, x, x);
  EXPECT_EQ(result.weights({0}).size(3), 3);
  expect_errors({{[&] { result.weights(); }, "head 1 is linear attention"}});
}

TEST(MultiHeadAttention, RefusesMisuse) {
  const auto making = [](const MultiHeadConfig& config) {
    return [config] { MultiHeadAttention module(config); };
  };
  const auto module = module_of(scaled_dot("causal", 2));
  const Tensor x = random({2, 3, 12});
  MultiHeadState empty, prepared = module->prepare(x, torch::tensor({1, 3})), begun;
  module->step(x, begun);
  expect_errors({
      {making({.depth = 4}), "got no heads; give a group"},
      {making({.depth = 4, .groups = {{.heads = 3}}}),
       "depth 4 does not divide among 3 heads; set"},
      {making({.depth = 0, .groups = {{}}}), "depth is 0, source_depth 0"},
      {making({.depth = 4, .groups = {{.heads = 4, .key_heads = 3}}}),
       "4 heads share 3 heads of keys; the second must divide the first"},
      {making({.depth = 4, .groups = {{.heads = 0}}, .head_depth = 2}), "0 heads share 0 heads"},
      {making({.depth = 6, .groups = {{.heads = 2, .rotary = true}}}),
       "heads have depth 3; rotary rotates pairs"},
      {making({.depth = 8,
               .groups = {{.heads = 2,
                           .rotary = true,
                           .rotation = {.scaling = parse_rotary_scaling("dynamic:4,8")}}}}),
       "take yarn, linear or llama3"},
      {making({.depth = 4, .groups = {{.choices = {.score = "aditive"}}}}),
       "did you mean additive"},
      {making({.depth = 4, .groups = {{.choices = {.score = "location"}}}}),
       "maximum number of keys"},
      {[&] { module->forward(x.slice(2, 1), x); },
       "query has shape [2, 3, 11]; it must be [batch, positions, 12]"},
      {[&] { module->forward(x, x[0]); }, "source has shape [3, 12]"},
      {[&] { module->forward(x, x.slice(0, 1)); }, "batch"},
      {[&] { module->read(x, empty); }, "the state holds nothing to read; prepare() a source"},
      {[&] { module->step(x, prepared); }, "the state was prepared with lengths"},
      {[&] { module->step(x.slice(0, 1), begun); }, "x has batch 1, the state 2; they must match"},
  });
}

}  // namespace multi_head_attention_test
}  // namespace attend
