// A kind of answers from outside the library, several labels per source: trained, answered,
// evaluated and explained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "attend/base/error.h"
#include "attend/explain/methods.h"
#include "attend/inference/answer_json.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"
#include "attend/models/answer_kind.h"
#include "attend/models/model_type.h"
#include "attend/models/pair_model.h"
#include "attend/models/pair_network.h"
#include "attend/nn/attention_trace.h"
#include "attend/runs/training.h"
#include "attend/text/units.h"
#include "tests/support/files.h"

namespace attend {
namespace own_kind_test {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t first_label = Vocabulary::unknown + 1;

// All labels of a source, in the order of their names.
class LabelSet final : public AnswerKind {
 public:
  std::string_view name() const override { return "set of labels"; }
  bool has_labels() const override { return true; }
  bool is_searched() const override { return false; }

  void check_labels(int64_t labels, int64_t, const std::string&, const std::string& target,
                    const TextConfig&) const override {
    const auto names = split_words(target);
    if (std::set<std::string_view>(names.begin(), names.end()).size() !=
        static_cast<size_t>(labels))
      fail("{} names a label twice", in_quotes(target));
  }
  void encode_target(const PairModel&, GivenTarget given, EncodedPair& pair) const override {
    pair.target = std::move(given.ids);
    pair.no_eos = true;
  }
  std::optional<StepAnswer> read_step(const PairModel& model,
                                      std::span<const double> step) const override {
    std::vector<std::pair<std::string, int64_t>> found;
    for (int64_t id = first_label; id < std::ssize(step); ++id) {
      const double log_probability = step[static_cast<size_t>(id)];
      if (std::isnan(log_probability)) return std::nullopt;
      if (log_probability > std::log(0.5))
        found.emplace_back(model.target_vocabulary.token(id), id);
    }
    std::sort(found.begin(), found.end());
    StepAnswer answer;
    for (const auto& [label, id] : found) {
      answer.tokens.push_back(label);
      answer.ids.push_back(id);
      answer.log_probabilities.push_back(step[static_cast<size_t>(id)]);
    }
    return answer;
  }
  void normalise(const TextCodec& codec, std::string& reference,
                 std::vector<std::string>& tokens) const override {
    std::sort(tokens.begin(), tokens.end());
    reference = codec.join(tokens);
  }
  std::string metric() const override { return "sequence_error"; }
};

struct TopicsConfig {
  int64_t depth = 8;
  int64_t maximum_source_length = 8;

  Settings settings() { return {{"model.depth", &depth, "depth of a word's vector", 1, 1024}}; }
  void check() const {}
};

// Each label attends to the words by a query of its own; its probability is a logistic regression.
class Topics : public PairNetwork {
 public:
  Topics(const TopicsConfig& config, const SourceShape& source, int64_t target_tokens) {
    words_ = register_module("words", torch::nn::Embedding(source.tokens(), config.depth));
    labels_ =
        register_module("labels", torch::nn::Embedding(target_tokens - first_label, config.depth));
    output_ = register_module("output", torch::nn::Linear(config.depth, 1));
  }

  Tensor objective(const Batch& batch, const Pass& pass, double) override {
    const Tensor logits = scores(batch.source, batch.source_lengths, pass);
    Tensor wanted = at::zeros({logits.size(0), logits.size(1) + first_label});
    wanted.scatter_(1, batch.target, 1);  // padding is before the labels
    return at::binary_cross_entropy_with_logits(logits, wanted.slice(1, first_label), {}, {},
                                                at::Reduction::Sum);
  }

  // The labels of an answer do not depend on each other.
  Tensor log_probabilities(const Batch& batch, const Pass& pass) override {
    const Tensor queries = labels_->forward((batch.target - first_label).clamp_min(0));
    const Tensor own = answered(queries, batch.source, batch.source_lengths, pass);
    return distributions(batch.source, batch.source_lengths, Pass{})
        .unsqueeze(1)
        .repeat({1, batch.target.size(1), 1})
        .scatter(2, batch.target.unsqueeze(2), at::log_sigmoid(own).to(at::kDouble));
  }

  std::unique_ptr<DecodingState> start(const Tensor& source, const Tensor& lengths,
                                       const Pass&) override {
    return std::make_unique<State>(*this, source, lengths);
  }

  bool attends() const override { return true; }

 private:
  static constexpr Site reading_words{NetworkPart::decoder, 0, true};

  struct State : DecodingState {
    State(Topics& its_network, Tensor its_source, Tensor its_lengths)
        : network(its_network), source(std::move(its_source)), lengths(std::move(its_lengths)) {}

    StepResult step(const Tensor&, bool with_weights, const Pass& pass) override {
      AttentionTrace trace;
      StepResult result;
      result.log_probabilities = network.distributions(source, lengths, pass.watched_by(trace));
      if (with_weights) result.weights = trace.mean_weights(reading_words).mean(1);
      return result;
    }
    void reorder(const Tensor& rows, bool same_sources) override {
      if (same_sources) return;
      source = selected_rows(source, rows);
      lengths = selected_rows(lengths, rows);
    }

    Topics& network;
    Tensor source, lengths;
  };

  // Queries [B, T, D] -> logits [B, T, 1].
  Tensor answered(const Tensor& queries, const Tensor& source, const Tensor& lengths,
                  const Pass& pass) {
    const Tensor words = pass.watched(WatchedVectors::input, words_->forward(source));
    const Tensor context = pass.at_site(reading_words)
                               .attention(queries, words, words, {.scope = key_lengths(lengths)})
                               .context;
    return output_->forward(context * queries);
  }

  Tensor scores(const Tensor& source, const Tensor& lengths, const Pass& pass) {
    const Tensor queries = labels_->weight.unsqueeze(0).expand({source.size(0), -1, -1});
    return answered(queries, source, lengths, pass).squeeze(2);
  }

  // [B, target tokens].
  Tensor distributions(const Tensor& source, const Tensor& lengths, const Pass& pass) {
    return at::constant_pad_nd(at::log_sigmoid(scores(source, lengths, pass)).to(at::kDouble),
                               {first_label, 0}, -std::numeric_limits<double>::infinity());
  }

  torch::nn::Embedding words_{nullptr}, labels_{nullptr};
  torch::nn::Linear output_{nullptr};
};

std::unique_ptr<NetworkConfig> topics_config() {
  return std::make_unique<NetworkConfigOf<TopicsConfig>>(
      [](const TopicsConfig& config, const SourceShape& source,
         const TargetShape& target) -> std::shared_ptr<PairNetwork> {
        return std::make_shared<Topics>(config, source, target.tokens);
      });
}

// Pairs of words and the labels of both, not in order.
std::string topic_pairs() {
  const std::vector<std::pair<std::string, std::string>> words = {
      {"apple", "fruit"}, {"pear", "fruit"}, {"dog", "animal"},
      {"cat", "animal"},  {"red", "colour"}, {"blue", "colour"}};
  std::string pairs;
  for (const auto& [word, label] : words)
    for (const auto& [other, its_label] : words)
      pairs += fmt::format("{} {}\t{}\n", word, other,
                           label == its_label ? label : label + " " + its_label);
  return pairs;
}

TEST(OwnKind, IsTrainedAnsweredEvaluatedAndExplained) {
  static const LabelSet label_sets;
  register_model_type({.name = "topics",
                       .summary = "the labels of a text",
                       .answers = &label_sets,
                       .text = {.source_units = "space", .target_units = "space"},
                       .label_smoothing = 0,
                       .config = topics_config});
  const test::TemporaryFolder folder;
  TrainOptions options;
  options.data = options.valid = folder.write("pairs.tsv", topic_pairs());
  options.out = folder / "model";
  options.assignments = {"model.type=topics",        "train.steps=300",      "train.batch=12",
                         "train.learning_rate=0.05", "train.warmup_steps=5", "train.replicas=2"};
  EXPECT_EQ(train_model(options).outcome.best_metric, 0) << "no set of labels is wrong";

  const Model model(options.out, {.threads = 2});
  EXPECT_EQ(model.answer_kind().name(), "set of labels");
  const Answer answer = model.answer({"red dog"}, {.with_weights = true})[0];
  EXPECT_EQ(answer.best().text, "animal colour");
  EXPECT_EQ(answer.best().log_probabilities.size(), 2);
  EXPECT_EQ(answer.best().weights.size(), 2);
  EXPECT_EQ(model.answer({"cat dog"})[0].best().text, "animal");
  const auto json = answer_json(model, "red dog", answer, /*details=*/true);
  EXPECT_THAT(json["predictions"][0]["tokens"], ElementsAre("animal", "colour"));
  EXPECT_THAT(test::error_of([&] { model.answer({"dog"}, {.beam = 2}); }),
              HasSubstr("answers a set of labels without a search"));

  const std::vector<Example> examples = {{"dog blue", {"colour animal"}}, {"pear", {"animal"}}};
  const Evaluation evaluation = evaluate(model, examples, {});
  EXPECT_EQ(
      measure_answers(metric_named("sequence_error"), evaluation.answers, metric_options(model)),
      0.5)
      << "the order of labels does not count";
  EXPECT_EQ(likelihood(model, {{"dog blue", {"colour animal"}}}).tokens, 2);
  EXPECT_THAT(test::error_of([&] {
                model.check_labels({{"dog", {"plant"}}}, "t.tsv");
              }),
              HasSubstr("the training labels are"));
  EXPECT_THAT(test::error_of([&] {
                model.check_labels({{"dog", {"animal animal"}}}, "t.tsv");
              }),
              HasSubstr("names a label twice"));

  const Subject subject = answered_subject(model, "red dog", {});
  EXPECT_THAT(subject.target, ElementsAre("animal", "colour"));
  for (const char* method : {"attention", "occlusion", "gradient"}) {
    const Tensor scores = method_scores(find_method(method), subject).abs();
    EXPECT_TRUE(at::equal(scores.argmax(1), at::tensor({1, 0}))) << method << scores;
  }
}

}  // namespace own_kind_test
}  // namespace attend
