#include "attend/nn/head_forms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attend/nn/attention_trace.h"
#include "attend/nn/multi_head_attention.h"
#include "attend/nn/positions.h"
#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace head_forms_test {

using at::Tensor;

// For equal sums in another order: some units in the last place of numbers from 1 to 100.
bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-11, 1e-12); }

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

// In float64, with parameters that hide no mistakes.
std::shared_ptr<MultiHeadAttention> made(const MultiHeadConfig& config) {
  torch::manual_seed(2);
  auto module = std::make_shared<MultiHeadAttention>(config);
  module->to(torch::kDouble);
  const torch::NoGradGuard no_gradient;
  for (Tensor& each : module->parameters()) each.add_(torch::randn_like(each) * 0.2);
  return module;
}

// A module's parameters as lists of numbers, and maps of them by plain loops.
class Loops {
 public:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  explicit Loops(const torch::nn::Module& module) : all_(module.named_parameters()) {}

  static Rows rows(const Tensor& x) {
    Rows result;
    for (const Tensor& row : x.unbind()) {
      const Tensor plain = row.detach().contiguous();
      result.emplace_back(plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel());
    }
    return result;
  }
  Row vector(const std::string& name) const { return rows(all_[name].unsqueeze(0))[0]; }

  Rows map(const std::string& name, const Rows& x) const {
    const Rows weight = rows(all_[name + ".weight"]);
    const Row bias =
        all_.contains(name + ".bias") ? vector(name + ".bias") : Row(weight.size(), 0.0);
    Rows result;
    for (const Row& row : x) {
      Row out = bias;
      for (size_t c = 0; c < weight.size(); ++c) out[c] += dot(weight[c], row);
      result.push_back(out);
    }
    return result;
  }

  static double dot(const Row& a, const Row& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }
  static Row part(const Row& row, size_t first, size_t count) {
    const auto begin = row.begin() + static_cast<ptrdiff_t>(first);
    return {begin, begin + static_cast<ptrdiff_t>(count)};
  }
  // softmax of q . k / sqrt(depth) over the keys up to `last`.
  static Row weights(const Row& query, const Rows& keys, size_t last) {
    Row result;
    double sum = 0;
    for (size_t j = 0; j <= last; ++j) {
      result.push_back(
          std::exp(dot(query, keys[j]) / std::sqrt(static_cast<double>(query.size()))));
      sum += result.back();
    }
    for (double& each : result) each /= sum;
    return result;
  }
  static Row inverse_size(const Row& x, double epsilon) {
    return {1 / std::sqrt(dot(x, x) / static_cast<double>(x.size()) + epsilon)};
  }
  static Rows parts(const Rows& x, size_t first, size_t count) {
    Rows result;
    for (const Row& row : x) result.push_back(part(row, first, count));
    return result;
  }
  static Tensor tensor(const Rows& x) {
    std::vector<Tensor> result;
    for (const Row& row : x) result.push_back(torch::tensor(row, torch::kDouble));
    return at::stack(result);
  }

 private:
  torch::OrderedDict<std::string, Tensor> all_;
};

MultiHeadConfig gated(bool differential = false) {
  MultiHeadConfig config{.depth = 8, .groups = {{.choices = {.scope = "causal"}, .heads = 4}}};
  config.groups[0].gated = true;
  config.groups[0].differential = differential;
  config.layer = 3;
  return config;
}

MultiHeadConfig latent() {
  MultiHeadConfig config{.depth = 8, .groups = {{.choices = {.scope = "causal"}, .heads = 2}}};
  config.groups[0].latent_depth = 6;
  config.groups[0].rotary_depth = 2;
  return config;
}

void add_context(Loops::Row& context, const Loops::Row& weights, const Loops::Rows& values,
                 double factor) {
  for (size_t j = 0; j < weights.size(); ++j)
    for (size_t a = 0; a < context.size(); ++a) context[a] += factor * weights[j] * values[j][a];
}

TEST(GatedHeads, AreTheFormula) {
  for (const int64_t length : {1, 3, 59}) {
    const auto module = made(gated());
    const Loops loops(*module);
    const Tensor x = random({1, length, 8});
    const Loops::Rows in = Loops::rows(x[0]), q = loops.map("query", in), k = loops.map("key", in),
                      v = loops.map("value", in), gate = loops.map("gate0", in);
    Loops::Rows contexts(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      for (size_t h = 0; h < 4; ++h) {
        Loops::Row context(2, 0.0);
        add_context(context,
                    Loops::weights(Loops::part(q[i], 2 * h, 2), Loops::parts(k, 2 * h, 2), i),
                    Loops::parts(v, 2 * h, 2), 1);
        for (size_t a = 0; a < 2; ++a)
          contexts[i].push_back(context[a] / (1 + std::exp(-gate[i][2 * h + a])));
      }
    }
    const Tensor expected = Loops::tensor(loops.map("output", contexts));
    EXPECT_TRUE(close(module->forward(x, x)[0], expected)) << length;
  }
}

// Ye et al. 2024, eq. 1-3, with the gate of GatedHeads after the norm.
TEST(HeadDifference, IsTheFormula) {
  for (const int64_t length : {1, 3, 59}) {
    const auto module = made(gated(/*differential=*/true));
    const Loops loops(*module);
    const Tensor x = random({1, length, 8});
    const Loops::Rows in = Loops::rows(x[0]), q = loops.map("query", in), k = loops.map("key", in),
                      v = loops.map("value", in), gate = loops.map("gate0", in);
    const auto vector = [&](const char* name) {
      return loops.vector(std::string("difference0.") + name);
    };
    const double first = 0.8 - 0.6 * std::exp(-0.3 * 3);
    const double factor = std::exp(Loops::dot(vector("factor_a"), vector("factor_b"))) -
                          std::exp(Loops::dot(vector("factor_e"), vector("factor_f"))) + first;
    const Loops::Row norm = vector("norm");
    Loops::Rows contexts(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      for (size_t pair = 0; pair < 2; ++pair) {
        Loops::Row context(4, 0.0);
        for (const size_t h : {2 * pair, 2 * pair + 1})
          add_context(context,
                      Loops::weights(Loops::part(q[i], 2 * h, 2), Loops::parts(k, 2 * h, 2), i),
                      Loops::parts(v, 4 * pair, 4), h % 2 == 0 ? 1 : -factor);
        const double size = Loops::inverse_size(context, 1e-5)[0];
        for (size_t a = 0; a < 4; ++a)
          contexts[i].push_back(context[a] * size * norm[a] * (1 - first) /
                                (1 + std::exp(-gate[i][4 * pair + a])));
      }
    }
    const Tensor expected = Loops::tensor(loops.map("output", contexts));
    EXPECT_TRUE(close(module->forward(x, x)[0], expected)) << length;
  }
}

// DeepSeek-AI 2024, eq. 9-19.
TEST(LatentHeads, AreTheFormula) {
  for (const int64_t length : {1, 3, 59}) {
    const auto module = made(latent());
    const Loops loops(*module);
    const Tensor x = random({1, length, 8});
    const Loops::Rows in = Loops::rows(x[0]), q = loops.map("query", in),
                      compressed = loops.map("latent0.compress", in);
    Loops::Rows c;
    for (const Loops::Row& row : compressed) {
      Loops::Row own = Loops::part(row, 0, 6);
      const double size = Loops::inverse_size(own, 1e-6)[0];
      const Loops::Row norm = loops.vector("latent0.norm");
      for (size_t a = 0; a < 6; ++a) own[a] *= size * norm[a];
      c.push_back(own);
    }
    const Loops::Rows k = loops.map("latent0.key", c), v = loops.map("latent0.value", c);
    // One pair of numbers of position p turns by the angle p.
    const auto turned = [](Loops::Row head, size_t first, size_t p) {
      const auto angle = static_cast<double>(p);
      const double a = head[first], b = head[first + 1];
      head[first] = a * std::cos(angle) - b * std::sin(angle);
      head[first + 1] = a * std::sin(angle) + b * std::cos(angle);
      return head;
    };
    Loops::Rows contexts(in.size());
    for (size_t h = 0; h < 2; ++h) {
      Loops::Rows keys;
      for (size_t j = 0; j < in.size(); ++j) {
        Loops::Row key = Loops::part(k[j], 4 * h, 4);
        key.push_back(compressed[j][6]);
        key.push_back(compressed[j][7]);
        keys.push_back(turned(key, 4, j));
      }
      for (size_t i = 0; i < in.size(); ++i) {
        Loops::Row context(4, 0.0);
        add_context(context, Loops::weights(turned(Loops::part(q[i], 6 * h, 6), 4, i), keys, i),
                    Loops::parts(v, 4 * h, 4), 1);
        contexts[i].insert(contexts[i].end(), context.begin(), context.end());
      }
    }
    const Tensor expected = Loops::tensor(loops.map("output", contexts));
    EXPECT_TRUE(close(module->forward(x, x)[0], expected)) << length;
  }
}

TEST(LatentHeads, KeepFewNumbersPerToken) {
  const at::NoGradGuard no_gradient;
  const LatentHeads heads(
      {.source_depth = 8, .heads = 4, .head_depth = 16, .latent_depth = 24, .rotary_depth = 8});
  const Tensor kept = torch::randn({2, 1, 5, 32});
  const auto [key, value] = heads.expanded(kept, {});
  EXPECT_EQ(key.sizes(), at::IntArrayRef({2, 4, 5, 24}));
  EXPECT_EQ(value.sizes(), at::IntArrayRef({2, 4, 5, 16}));
  EXPECT_TRUE(heads.absorbs(1));
  EXPECT_FALSE(heads.absorbs(1000));
}

// The absorbed form makes no key or value of a token; its products equal the products of these.
TEST(LatentHeads, AbsorbedProductsAreThoseOfKeysAndValues) {
  const at::NoGradGuard no_gradient;
  LatentHeads heads(
      {.source_depth = 8, .heads = 2, .head_depth = 3, .latent_depth = 5, .rotary_depth = 2});
  heads.to(torch::kDouble);
  const Tensor kept = random({2, 1, 7, 7}), query = random({2, 2, 4, 5});
  const auto [key, value] = heads.expanded(kept, {});
  EXPECT_TRUE(close(at::matmul(heads.absorbed_queries(query), kept.transpose(2, 3)),
                    at::matmul(query, key.transpose(2, 3))));
  const Tensor weights = random({2, 2, 4, 7}).softmax(-1);
  EXPECT_TRUE(close(heads.absorbed_contexts(at::matmul(weights, kept.narrow(3, 0, 5))),
                    at::matmul(weights, value)));
}

// The sums of the values by the weights that a watch sees are the contexts before their factors.
TEST(HeadForms, WatchesSeeTheWeights) {
  const at::NoGradGuard no_gradient;
  for (const MultiHeadConfig& config : {gated(), gated(/*differential=*/true), latent()}) {
    const auto module = made(config);
    const Tensor x = random({2, 7, 8});
    AttentionTrace trace;
    const Tensor watched = module->forward(x, x, {}, Pass{}.watched_by(trace));
    EXPECT_TRUE(close(watched, module->forward(x, x)));
    ASSERT_EQ(trace.attentions().size(), 1U);
    const TracedAttention& one = trace.attentions()[0];
    const Tensor weights = one.weights();
    EXPECT_EQ(one.heads(), config.groups[0].differential ? 2 : config.groups[0].heads);
    EXPECT_EQ(one.has_signed_weights(), config.groups[0].differential);
    EXPECT_TRUE(close(at::matmul(weights, one.calls[0].value), one.calls[0].result.context));
    EXPECT_EQ(weights.triu(1).abs().max().item<double>(), 0);
    const Tensor ones = at::ones({2, one.heads(), 7}, at::kDouble);
    EXPECT_EQ(close(weights.sum(-1), ones), !config.groups[0].differential);
  }
}

TEST(HeadForms, HaveGradients) {
  for (const MultiHeadConfig& config : {gated(), gated(/*differential=*/true), latent()}) {
    const auto module = made(config);
    const Tensor x = random({2, 3, 8}), direction = random({2, 3, 8});
    const auto loss = [&](const Tensor& input) {
      return (module->forward(input, input) * direction).sum();
    };
    reference::expect_gradients([&](const reference::Tensors& inputs) { return loss(inputs[0]); },
                                {x}, {"x"});
    reference::expect_parameter_gradients(*module, [&] { return loss(x); });
    // Steps of one position take the absorbed form.
    const auto gradients = [&](const Tensor& output) {
      return reference::gradients((output * direction).sum(), module->parameters(), false);
    };
    const reference::Tensors expected = gradients(module->forward(x, x));
    MultiHeadState state;
    std::vector<Tensor> outputs;
    for (int64_t t = 0; t < 3; ++t) outputs.push_back(module->step(x.slice(1, t, t + 1), state));
    const reference::Tensors found = gradients(at::cat(outputs, 1));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(close(found[i], expected[i])) << i;
  }
}

TEST(HeadForms, RefuseMisuse) {
  const auto making = [](MultiHeadConfig config, const std::function<void(HeadGroup&)>& change) {
    change(config.groups[0]);
    return [config] { MultiHeadAttention module(config); };
  };
  const MultiHeadConfig difference = gated(/*differential=*/true);
  expect_errors({
      {making(difference, [](HeadGroup& group) { group.heads = 1; }), "1 heads subtract"},
      {making(difference, [](HeadGroup& group) { group.key_heads = 1; }), "over 1 heads of keys"},
      {making(difference, [](HeadGroup& group) { group.choices.normaliser = "monotonic"; }),
       "normaliser monotonic; take even numbers"},
      {making(latent(), [](HeadGroup& group) { group.key_heads = 1; }), "key_heads 1"},
      {making(latent(), [](HeadGroup& group) { group.choices.score = "additive"; }),
       "score additive"},
      {making(latent(), [](HeadGroup& group) { group.rotary_depth = 3; }),
       "3 rotated numbers; each must"},
      {[] { HeadDifference(0, 0); }, "heads have depth 0 in layer 0"},
  });
}

}  // namespace head_forms_test
}  // namespace attend
