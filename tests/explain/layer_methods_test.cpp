// Tests of methods that follow vectors through the layers.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/methods.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace layer_methods_test {

using at::Tensor;
using test::small_model;
using test::SmallModel;

// Removes some neighbouring keys from one layer by their weights, and keeps each layer's output.
struct Keys {
  int64_t first = 0, count = 1;
};

class WithoutKeys : public Watch {
 public:
  WithoutKeys(const Site& site, const Keys& keys) : site_(site), keys_(keys) {}

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    AttentionResult result = Watch::attention(call, rest);
    if (!(rest.site == site_)) return result;
    Tensor weights = attention_weights(call.query, call.key, result.lse, call.spec).clone();
    weights.narrow(-1, keys_.first, keys_.count).zero_();
    result.context = at::matmul(weights, call.value);
    return result;
  }

  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    const bool ends = which == WatchedVectors::top;
    if (ends || (which == WatchedVectors::layer && rest.site.layer > 1)) {
      auto& all = rest.site.part == NetworkPart::decoder ? decoder : encoder;
      all.push_back(x[0]);
    }
    return x;
  }

  std::vector<Tensor> encoder, decoder;  // output of each layer

 private:
  Site site_;
  Keys keys_;
};

WithoutKeys run_without(const Subject& subject, const Site& site, const Keys& keys) {
  const at::NoGradGuard not_recorded;
  WithoutKeys watch(site, keys);
  subject.network().log_probabilities(subject.batch, Pass{}.watched_by(watch));
  return watch;
}

// [rows]: 1 - cos between the layer's outputs with and without the keys.
Tensor turned(const Subject& subject, const Site& site, const Keys& keys) {
  const WithoutKeys clean = run_without(subject, {}, {}), other = run_without(subject, site, keys);
  const bool of_decoder = site.part == NetworkPart::decoder;
  const auto layer = static_cast<size_t>(site.layer) - 1;
  const Tensor x = of_decoder ? clean.decoder[layer] : clean.encoder[layer];
  const Tensor y = of_decoder ? other.decoder[layer] : other.encoder[layer];
  return 1 - (x * y).sum(1) / (x.norm(2, 1) * y.norm(2, 1));
}

Tensor turned_by_all(const Subject& subject, const Site& site, int64_t keys) {
  std::vector<Tensor> columns;
  for (int64_t key = 0; key < keys; ++key) columns.push_back(turned(subject, site, {key}));
  return at::stack(columns, 1);
}

TEST(ValueZeroing, IsHowFarVectorsTurnWithoutWeights) {
  for (const char* name : {"classifier_class", "tagger"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    Tensor product = at::eye(6, at::kDouble);
    for (const int64_t layer : {1, 2}) {
      const Tensor map = turned_by_all(subject, {NetworkPart::encoder, layer, false}, 6);
      product = (map / map.sum(1, true)).matmul(product);
    }
    const Tensor scores = method_scores(find_method("value_zeroing"), subject);
    const Tensor wanted = scores.size(0) == 1 ? product.slice(0, 0, 1) : product.slice(0, 1);
    EXPECT_LE((scores - wanted.slice(1, 1)).abs().max().item<double>(), 1e-7);
  }
}

// For a class token and five others: two pairs are taken together, the last is by itself.
TEST(ValueZeroing, ZeroesNeighboursTogether) {
  const SmallModel small = small_model("tagger");
  const Subject subject = small.subject();
  ASSERT_EQ(subject.source_length(), 5);
  Tensor product = at::eye(6, at::kDouble);
  for (const int64_t layer : {1, 2}) {
    const Site site{NetworkPart::encoder, layer, false};
    std::vector<Tensor> columns = {turned(subject, site, {0})};
    for (const Keys& keys : {Keys{1, 2}, Keys{3, 2}, Keys{5, 1}})
      for (int64_t i = 0; i < keys.count; ++i)
        columns.push_back(turned(subject, site, keys) / keys.count);
    const Tensor map = at::stack(columns, 1);
    product = (map / map.sum(1, true)).matmul(product);
  }
  const Tensor scores = method_scores(find_method("value_zeroing"), subject, {.max_passes = 3});
  EXPECT_LE((scores - product.slice(0, 1).slice(1, 1)).abs().max().item<double>(), 1e-7);
}

TEST(ValueZeroing, FollowsADecoder) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  Tensor encoder = at::eye(5, at::kDouble), decoder = at::zeros({4, 5}, at::kDouble);
  for (const int64_t layer : {1, 2}) {
    const Tensor map = turned_by_all(subject, {NetworkPart::encoder, layer, false}, 5);
    encoder = (map / map.sum(1, true)).matmul(encoder);
  }
  for (const int64_t layer : {1, 2}) {
    const Tensor own = turned_by_all(subject, {NetworkPart::decoder, layer, false}, 4);
    const Tensor source = turned_by_all(subject, {NetworkPart::decoder, layer, true}, 5);
    const Tensor sums = own.sum(1, true) + source.sum(1, true);
    decoder = (own / sums).matmul(decoder) + (source / sums).matmul(encoder);
  }
  const Tensor scores = method_scores(find_method("value_zeroing"), subject);
  EXPECT_LE((scores - decoder).abs().max().item<double>(), 1e-7);
}

// One attention sublayer from its parameters: each key's part in each row, and their sum.
struct Sublayer {
  std::vector<std::vector<Tensor>> parts;  // [rows][keys]
  std::vector<Tensor> sums;                // [rows]
};

Sublayer attention_by_hand(const Subject& subject, const TracedAttention& attention,
                           const Tensor& x, const std::string& name, bool normalise_first) {
  const auto all = subject.network().named_parameters();
  const auto parameter = [&](const std::string& key) { return all[name + key].detach(); };
  const auto centred = [](const Tensor& u) { return u - u.mean(); };
  const auto spread = [&](const Tensor& u) { return (centred(u).square().mean() + 1e-5).sqrt(); };
  const Tensor gain = parameter("_norm.weight"), shift = parameter("_norm.bias");
  const Tensor weights = traced_weights(attention).detach();
  const Tensor map = parameter(".output.weight"), bias = parameter(".output.bias");
  const int64_t count = x.size(0), heads = weights.size(0), depth = x.size(1) / heads;
  Sublayer result;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Tensor> parts;
    Tensor sum = bias.clone();
    for (int64_t j = 0; j < count; ++j) {
      const Tensor read = normalise_first ? centred(x[j]) / spread(x[j]) * gain + shift : x[j];
      const Tensor value = parameter(".value.weight").matmul(read) + parameter(".value.bias");
      Tensor part = i == j ? x[i].clone() : at::zeros_like(x[i]);
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t first = head * depth, last = first + depth;
        part += weights[head][i][j] * map.slice(1, first, last).matmul(value.slice(0, first, last));
      }
      parts.push_back(part);
      sum += part;
    }
    if (!normalise_first) {
      for (Tensor& part : parts) part = gain * centred(part) / spread(sum);
      sum = gain * centred(sum) / spread(sum) + shift;
    }
    result.parts.push_back(parts);
    result.sums.push_back(sum);
  }
  return result;
}

// Ferrando et al. 2022, eq. 7 and 8.
Tensor nearness(const Sublayer& made) {
  const auto count = static_cast<int64_t>(made.sums.size());
  const Tensor map = at::zeros({count, count}, at::kDouble);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < count; ++j) {
      const Tensor sum = made.sums[static_cast<size_t>(i)];
      const Tensor part = made.parts[static_cast<size_t>(i)][static_cast<size_t>(j)];
      map[i][j] = (sum.abs().sum() - (sum - part).abs().sum()).clamp_min(0);
    }
  return map / map.sum(1, true);
}

TEST(Alti, IsHowNearPartsAreToTheWhole) {
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first);
    const SmallModel small(
        "alti", "classifier",
        {"model.depth=8", "model.heads=2", "model.layers=2", "model.pooling=class",
         first ? "model.normalise_first=true" : "model.normalise_first=false"});
    const Subject subject = small.subject();
    for (const Tensor& each : subject.network().parameters())
      each.detach().add_(at::randn_like(each) * 0.1);
    const NetworkTrace trace = trace_network(subject.network(), subject.batch, {.gradients = true});
    Tensor product = at::eye(6, at::kDouble);
    for (size_t layer = 0; layer < 2; ++layer) {
      const Sublayer made =
          attention_by_hand(subject, trace.attentions[layer], trace.layers[layer][0].detach(),
                            "encoder.layers.layer" + std::to_string(layer) + "_self", first);
      EXPECT_TRUE(at::stack(made.sums).allclose(trace.blocks[layer].output[0], 1e-9, 1e-9));
      product = nearness(made).matmul(product);
    }
    const Tensor scores = method_scores(find_method("alti"), subject, trace);
    EXPECT_LE((scores - product.slice(0, 0, 1).slice(1, 1)).abs().max().item<double>(), 1e-9);
  }
}

// Parts of the encoder's vectors and of the answer so far sum to one.
TEST(Alti, SharesOfADecoderAreAtMostOne) {
  const SmallModel small = small_model("transformer");
  const Tensor sums = method_scores(find_method("alti"), small.subject()).sum(1);
  EXPECT_GT(sums.min().item<double>(), 0);
  EXPECT_LE(sums.max().item<double>(), 1 + 1e-9);
}

// If attention adds nothing, each token keeps its own vector.
TEST(LayerMethods, SeeThatNothingIsRead) {
  const SmallModel small = small_model("tagger");
  const Subject subject = small.subject();
  for (const auto& each : subject.network().named_parameters())
    if (each.key().find("_self.output") != std::string::npos) each.value().detach().zero_();
  const Tensor own = at::eye(subject.source_length(), at::kDouble);
  for (const char* name : {"value_zeroing", "alti", "relevance"}) {
    SCOPED_TRACE(name);
    const Tensor scores = method_scores(find_method(name), subject);
    // Relevance excludes a token's relevance to itself.
    const Tensor expected = std::string(name) == "relevance" ? at::zeros_like(own) : own;
    EXPECT_LE((scores - expected).abs().max().item<double>(), 1e-9);
  }
}

// Tokens outside the window get nothing, even if grouped with keys inside.
TEST(ValueZeroing, KeepsToTheScope) {
  const SmallModel small("window", "tagger",
                         {"model.depth=8", "model.heads=2", "model.layers=1",
                          "model.recurrent_layers=0", "model.scope=window:1"});
  const Subject subject = small.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  const MethodRow& row = find_method("value_zeroing");
  const Tensor scores = method_scores(row, subject, trace, {.max_passes = 2});
  const Tensor outside = method_scope(row, subject, trace).logical_not();
  ASSERT_GT(outside.sum().item<int64_t>(), 0);
  EXPECT_EQ(scores.masked_select(outside).abs().sum().item<double>(), 0);
  EXPECT_GT(scores.min().item<double>(), -1e-12);
}

TEST(Flow, TakesNeighboursOfLongSourcesTogether) {
  SmallModel small = small_model("classifier_class");
  for (int word = 0; word < 195; ++word) small.source += word % 3 == 0 ? " b" : " a";
  const Subject subject = small.subject();
  ASSERT_EQ(subject.source_length(), 200);
  const Tensor scores = method_scores(find_method("flow"), subject);
  EXPECT_TRUE(scores.select(1, 0).equal(scores.select(1, 1)));
  EXPECT_FALSE(scores.select(1, 1).equal(scores.select(1, 2)));
  EXPECT_GT(scores.min().item<double>(), 0);
}

}  // namespace layer_methods_test
}  // namespace attend
