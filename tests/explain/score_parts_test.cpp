#include "attend/explain/score_parts.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <map>

#include "attend/explain/knock_out.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/shown.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace score_parts_test {

using at::Tensor;
using test::small_model;
using test::SmallModel;
using testing::HasSubstr;

// Biases and gains are initialised to 0 and 1, which would hide mistakes.
void shake(const SmallModel& small) {
  const at::NoGradGuard no_gradient;
  at::manual_seed(3);
  for (const Tensor& each : small.model.network->parameters())
    each.add_(at::randn_like(each) * 0.2);
}

std::string edge_name(const TracedAttention& attention, int64_t head, int64_t query, int64_t key) {
  return fmt::format("{}.head.{}.query.{}.key.{}", attention_key(attention.site), head, query, key);
}

// Sums of some hundred float64 terms near 1.
constexpr double close = 1e-9;

TEST(ScoreParts, AddUpToTheScore) {
  std::map<std::string, int> explained;
  for (const SmallModel& small : test::small_models()) {
    SCOPED_TRACE(small.name);
    shake(small);
    const Explanation explanation(small.subject());
    for (const TracedAttention& one : explanation.trace().attentions) {
      for (const int64_t head : {int64_t{1}, one.heads()}) {
        ScoreParts made;
        try {
          made = score_parts(explanation, edge_name(one, head, 3, 2));
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), testing::AnyOf(HasSubstr("view scores: "), HasSubstr("at ")));
          continue;
        }
        ++explained[small.name];
        EXPECT_NEAR(made.parts.sum().item<double>(), made.score, close) << made.head;
        EXPECT_EQ(made.parts.size(0), std::ssize(made.queries));
        EXPECT_EQ(made.parts.size(1), std::ssize(made.keys));
      }
    }
  }
  for (const char* name : {"transformer", "lm", "encoder", "tagger", "classifier_class",
                           "classifier_mean", "classifier_gated", "classifier_pairs"})
    EXPECT_GE(explained[name], 4) << name;
}

// The parts of a stack of post-norm layers by plain tensor operations, on [parts, tokens, depth].
struct PlainParts {
  torch::OrderedDict<std::string, Tensor> parameters;
  std::vector<std::string> names = {"token", "position", "biases"};
  Tensor parts = {};

  Tensor value(const std::string& name) const { return parameters[name].detach(); }

  void add(const std::string& name, const Tensor& vectors) {
    names.push_back(name);
    parts = at::cat({parts, vectors.unsqueeze(0)});
  }

  void normalise(const std::string& name) {
    const Tensor deviation = (parts.sum(0).var(-1, false, true) + 1e-5).sqrt();
    parts = (parts - parts.mean(-1, true)) / deviation * value(name + ".weight");
    parts[2].add_(value(name + ".bias"));
  }

  void attend(const Tensor& weights, const std::string& name, const std::string& key) {
    const Tensor x = parts.sum(0), map = value(name + ".output.weight");
    const Tensor values = x.matmul(value(name + ".value.weight").t()) + value(name + ".value.bias");
    const int64_t depth = map.size(0) / weights.size(0);
    for (int64_t head = 0; head < weights.size(0); ++head) {
      const int64_t first = head * depth;
      add(fmt::format("{}.head.{}", key, head + 1), weights[head]
                                                        .matmul(values.narrow(1, first, depth))
                                                        .matmul(map.narrow(1, first, depth).t()));
    }
    parts[2].add_(value(name + ".output.bias"));
  }

  void feed_forward(const std::string& name, const std::string& key) {
    const Tensor x = parts.sum(0);
    const Tensor hidden =
        at::gelu(x.matmul(value(name + ".hidden.weight").t()) + value(name + ".hidden.bias"));
    add(key + ".feed_forward",
        hidden.matmul(value(name + ".output.weight").t()) + value(name + ".output.bias"));
  }

  // [parts, head depth] of the queries or keys of a head at a position.
  Tensor mapped(const std::string& name, int64_t head, int64_t depth, int64_t position) const {
    Tensor all = parts.matmul(value(name + ".weight").t());
    all[2].add_(value(name + ".bias"));
    return all.select(1, position).narrow(1, head * depth, depth);
  }
};

TEST(ScoreParts, AreThoseOfTwoLayersByHand) {
  const SmallModel small(
      "hand", "classifier",
      {"model.depth=8", "model.heads=2", "model.layers=2", "model.normalise_first=false",
       "model.normalise_input=true", "model.positions=learned", "model.bias=none",
       "model.activation=gelu", "model.feed_forward=12"});
  shake(small);
  const Explanation explanation(small.subject());
  const Subject& subject = explanation.subject();
  PlainParts plain{subject.network().named_parameters()};
  const Tensor tokens = explanation.trace().input[0].detach();
  const Tensor positions =
      plain.value("encoder.positions.table").narrow(0, 0, subject.source_length());
  plain.parts = at::stack({tokens, positions, at::zeros_like(tokens)});
  plain.normalise("encoder.norm");
  const Tensor weights = traced_weights(explanation.trace().attentions[0]);
  plain.attend(weights, "encoder.layers.layer0_self", "encoder.1");
  plain.normalise("encoder.layers.layer0_self_norm");
  plain.feed_forward("encoder.layers.layer0_feed_forward", "encoder.1");
  plain.normalise("encoder.layers.layer0_feed_forward_norm");
  for (int64_t head = 0; head < 2; ++head) {
    const ScoreParts made =
        score_parts(explanation, fmt::format("encoder.2.head.{}.query.5.key.2", head + 1));
    EXPECT_EQ(made.queries, plain.names);
    EXPECT_EQ(made.keys, plain.names);
    EXPECT_EQ(made.query, "e");
    EXPECT_EQ(made.key, "b");
    const std::string name = "encoder.layers.layer1_self";
    const Tensor wanted = plain.mapped(name + ".query", head, 4, 4)
                              .matmul(plain.mapped(name + ".key", head, 4, 1).t()) /
                          2;  // sqrt(4)
    EXPECT_TRUE(made.parts.allclose(wanted, 0, 1e-12));
    EXPECT_NEAR(made.weight,
                traced_weights(explanation.trace().attentions[1])[head][4][1].item<double>(), 0);
  }
}

TEST(ScoreParts, HaveTheBiasOfTheAttentionAsALastPart) {
  const SmallModel small = small_model("classifier_mean");  // distances by a learned bias
  shake(small);
  const Explanation explanation(small.subject());
  const ScoreParts made = score_parts(explanation, "encoder.1.head.1.query.4.key.1");
  EXPECT_THAT(made.queries, testing::ElementsAre("token", "biases", "attention bias"));
  EXPECT_NE(made.parts[-1][-1].item<double>(), 0);
  EXPECT_EQ(made.parts[-1].slice(0, 0, -1).abs().max().item<double>(), 0);
}

// The output of recurrent layers is one part.
TEST(ScoreParts, AddUpAboveRecurrentLayers) {
  const SmallModel small("recurrent", "classifier",
                         {"model.depth=8", "model.heads=2", "model.layers=2",
                          "model.feed_forward=8", "model.recurrent_layers=1"});
  shake(small);
  const Explanation explanation(small.subject());
  const ScoreParts made = score_parts(explanation, "encoder.2.head.1.query.2.key.1");
  EXPECT_NEAR(made.parts.sum().item<double>(), made.score, close);
}

TEST(ScoreParts, AreAViewWithJson) {
  const SmallModel small = small_model("classifier_mean");
  const Explanation explanation(small.subject());
  const Shown shown = show(
      explanation, {.view = ExplanationView::scores, .edge = "encoder.2.head.2.query.1.key.3"});
  ASSERT_EQ(shown.maps.size(), 1U);
  EXPECT_THAT(shown.maps[0].title, HasSubstr("encoder.2.head.2, 'a' on 'c': score "));
  EXPECT_THAT(shown_json(shown), HasSubstr(R"("measure":"score","score":)"));
  EXPECT_THAT(sum_text(*shown.sum), HasSubstr("all other pairs"));
}

TEST(ScoreParts, NamesWhatItCannotExplain) {
  const auto refusal = [](const SmallModel& small, const std::string& edge,
                          bool has_layer = false) {
    const Explanation explanation(small.subject());
    ShowOptions options{.view = ExplanationView::scores, .edge = edge};
    if (has_layer) options.choice.layer = 1;
    return test::error_of([&] { show(explanation, options); });
  };
  const SmallModel mean = small_model("classifier_mean");
  EXPECT_THAT(refusal(mean, ""), HasSubstr("name its query and key with at"));
  EXPECT_THAT(refusal(mean, "encoder.1.head.1.query.1"), HasSubstr("names several scores"));
  EXPECT_THAT(refusal(mean, "encoder.1.query.1.key.1"), HasSubstr("names several scores"));
  EXPECT_THAT(refusal(mean, "encoder.3.head.1.query.1.key.1"), HasSubstr("no such heads"));
  EXPECT_THAT(refusal(mean, "encoder.1.head.1.query.6.key.1"), HasSubstr("has 5 queries"));
  EXPECT_THAT(refusal(mean, "encoder.1.head.1.query.2.key.1", true), HasSubstr("leave method"));
  EXPECT_THAT(refusal(small_model("lm"), "layer.1.head.1.query.1.key.3"),
              HasSubstr("does not read this key"));
  EXPECT_THAT(refusal(small_model("transformer"), "decoder.1.source.head.1.query.1.key.1"),
              HasSubstr("another sequence"));
  EXPECT_THAT(refusal(SmallModel("additive", "classifier",
                                 {"model.depth=8", "model.heads=2", "model.layers=1",
                                  "model.feed_forward=8", "model.mechanism=bahdanau"}),
                      "encoder.1.head.1.query.2.key.1"),
              HasSubstr("not a product"));
  EXPECT_THAT(refusal(small_model("classifier_recurrence"), "encoder.2.head.1.query.2.key.1"),
              HasSubstr("is not a sum"));
  EXPECT_THAT(refusal(small_model("lm_mixed"), "layer.1.head.1.query.3.key.1"),
              HasSubstr("combine several scores"));
  const Explanation explanation(mean.subject());
  EXPECT_THAT(
      test::error_of([&] { show(explanation, {.edge = "encoder.1.head.1.query.1.key.1"}); }),
      HasSubstr("take that view"));
}

}  // namespace score_parts_test
}  // namespace attend
