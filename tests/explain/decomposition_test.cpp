#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "attend/explain/decomposition-inl.h"
#include "attend/explain/methods.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace decomposition_test {

using at::Tensor;
using test::small_model;
using test::small_models;
using test::SmallModel;

// Biases and gains are initialised to 0 and 1, which would hide mistakes.
void shake(const Subject& subject) {
  at::manual_seed(3);
  for (const Tensor& each : subject.network().parameters())
    each.detach().add_(at::randn_like(each) * 0.2);
}

TEST(DecompX, PartsAddUpToTheLogits) {
  int answered = 0;
  for (const SmallModel& small : small_models()) {
    SCOPED_TRACE(small.name);
    const Subject subject = small.subject();
    shake(subject);
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    const MethodRow& row = find_method("decompx");
    if (!refusal_reason(row, subject, trace).empty()) continue;
    ++answered;
    const OutputParts made = logit_parts(subject, logit_groups(subject, trace));
    EXPECT_LE((made.parts.sum(0) - made.whole).abs().max().item<double>(), 1e-9);
    EXPECT_TRUE(made.whole.allclose(trace.logits.view_as(made.whole), 1e-9, 1e-9));
    // Scores exclude parts of inputs outside the source: a class token, a start or an answer.
    const Tensor scores = method_scores(row, subject, trace);
    const int64_t others = trace.distributions.size(2) - made.whole.size(1);
    for (int64_t t = 0; t < scores.size(0); ++t) {
      const int64_t logit = subject.batch.target[0][t].item<int64_t>() - others;
      const Tensor own = made.parts.select(1, t).select(1, logit);
      const int64_t before = subject.network()
                                 .top_vectors(subject.source_length(), subject.target_length())
                                 .before_source;
      EXPECT_TRUE(scores[t].equal(own.slice(0, before, before + subject.source_length())));
    }
  }
  EXPECT_GE(answered, 6);
}

// Neighbours in a group have one common part, shared equally.
TEST(DecompX, PartsOfNeighboursAddUpToTheLogits) {
  for (const char* name : {"classifier_class", "transformer", "lm"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    shake(subject);
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    const MethodChoice choice{.max_passes = 3};
    const VectorGroups groups = logit_groups(subject, trace, choice);
    EXPECT_LT(groups.count(), trace.layers[0].size(1));
    const OutputParts made = logit_parts(subject, groups);
    EXPECT_LE((made.parts.sum(0) - made.whole).abs().max().item<double>(), 1e-9);
    const Tensor scores = method_scores(find_method("decompx"), subject, trace, choice);
    EXPECT_TRUE(scores.select(1, 0).equal(scores.select(1, 1)));
    EXPECT_FALSE(scores.select(1, 1).equal(scores.select(1, 4)));
  }
}

TEST(DecompX, SaysWhyNot) {
  const auto why = [](const SmallModel& small) {
    const Subject subject = small.subject();
    return refusal_reason(find_method("decompx"), subject,
                          trace_network(subject.network(), subject.batch));
  };
  EXPECT_EQ(why(small_model("seq2seq")),
            "models of this type do not report the vectors of the output layer; take "
            "integrated_gradients");
  EXPECT_EQ(why(small_model("classifier_bag")),
            "the model has no layers of self-attention; take integrated_gradients");
  const SmallModel experts("experts", "classifier",
                           {"model.depth=8", "model.heads=2", "model.layers=2", "model.experts=3"});
  EXPECT_EQ(why(experts),
            "a part of the network is not a sum over its inputs; take integrated_gradients");
}

// The paper's rules for a stack of post-norm layers, on parts [rows, tokens, ..].
struct Rules {
  torch::OrderedDict<std::string, Tensor> parameters;

  Tensor value(const std::string& name) const { return parameters[name].detach(); }

  static Tensor share(const Tensor& parts, const Tensor& bias) {
    const Tensor products = (parts * bias).sum(-1).abs();
    const Tensor shares = products / products.sum(-1, true);
    return parts + shares.unsqueeze(-1) * bias;
  }

  Tensor linear(const Tensor& parts, const std::string& name) const {
    return share(parts.matmul(value(name + ".weight").t()), value(name + ".bias"));
  }

  Tensor norm(const Tensor& parts, const std::string& name) const {
    const Tensor sum = parts.sum(1, true);
    const Tensor deviation = (sum.var(-1, false, true) + 1e-5).sqrt();
    const Tensor even = (parts - parts.mean(-1, true)) / deviation * value(name + ".weight");
    return share(even, value(name + ".bias"));
  }

  static Tensor slope(const Tensor& parts, Tensor (*f)(const Tensor& x)) {
    const Tensor sum = parts.sum(-2, true);
    return parts * (f(sum) / sum);
  }

  Tensor attended(const Tensor& parts, const Tensor& weights, const std::string& name) const {
    const Tensor map = value(name + ".output.weight");
    const int64_t heads = weights.size(0), depth = map.size(0) / heads;
    const Tensor values = parts.matmul(value(name + ".value.weight").t());
    Tensor sum = parts;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t first = head * depth, last = first + depth;
      const Tensor read = at::einsum("ij,jkd->ikd", {weights[head], values.slice(2, first, last)});
      sum = sum + read.matmul(map.slice(1, first, last).t());
    }
    return share(sum, map.matmul(value(name + ".value.bias")) + value(name + ".output.bias"));
  }
};

TEST(DecompX, IsWhatTheRulesSay) {
  const SmallModel small("rules", "classifier",
                         {"model.depth=8", "model.heads=2", "model.layers=2", "model.pooling=class",
                          "model.normalise_first=false", "model.activation=gelu", "model.hidden=7",
                          "model.hidden_activation=tanh"});
  const Subject subject = small.subject();
  shake(subject);
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  const Rules rules{subject.network().named_parameters()};
  const Tensor input = trace.layers[0][0].detach();
  Tensor parts = at::eye(input.size(0), at::kDouble).unsqueeze(2) * input;
  for (size_t layer = 0; layer < 2; ++layer) {
    const std::string name = "encoder.layers.layer" + std::to_string(layer);
    const Tensor weights = traced_weights(trace.attentions[layer]).detach();
    parts = rules.norm(rules.attended(parts, weights, name + "_self"), name + "_self_norm");
    const Tensor hidden = Rules::slope(rules.linear(parts, name + "_feed_forward.hidden"),
                                       [](const Tensor& x) { return at::gelu(x); });
    parts = rules.norm(parts + rules.linear(hidden, name + "_feed_forward.output"),
                       name + "_feed_forward_norm");
  }
  const Tensor hidden =
      Rules::slope(rules.linear(parts[0], "hidden"), [](const Tensor& x) { return x.tanh(); });
  const Tensor wanted = rules.linear(hidden, "output");  // [tokens, labels]
  const OutputParts made = logit_parts(subject, logit_groups(subject, trace));
  EXPECT_EQ(made.parts[-1].abs().max().item<double>(), 0);  // no decoder: its part is 0
  EXPECT_LE((made.parts.slice(0, 0, -1).squeeze(1) - wanted).abs().max().item<double>(), 1e-9);
}

}  // namespace decomposition_test
}  // namespace attend
