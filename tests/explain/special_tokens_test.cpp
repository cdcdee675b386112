#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/explain/evidence.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace special_tokens_test {

using at::Tensor;
using testing::ElementsAre;

// A tokenizer that adds [CLS] before a text and [SEP] after it.
constexpr const char* file = R"({
  "added_tokens": [{"id": 0, "content": "[CLS]", "special": true},
                   {"id": 1, "content": "[SEP]", "special": true}],
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 0], "sep": ["[SEP]", 1]},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "vocab": {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "a": 3, "b": 4, "c": 5, "d": 6, "e": 7}}})";

// A classifier with this tokenizer.
struct Classifier {
  test::TemporaryFolder folder;
  PairModel model;

  explicit Classifier(const std::vector<std::string>& settings) {
    at::manual_seed(5);
    ModelConfig config;
    config.type = "classifier";
    for (const std::string& one : settings) assign(config.settings(), one);
    TextConfig text;
    text.source_units = tokenizer_units;
    text.target_units = "line";
    text.tokenizer = folder.write("tokenizer.json", file);
    const std::vector<Example> examples = {
        {"a b c d e ?", {"good"}}, {"e d a", {"bad"}}, {"c", {"fair"}}};
    model = make_pair_model(text, config, examples);
    model.network->to(at::kDouble);
    model.network->eval();
  }

  Subject subject(const std::string& source) const {
    return make_subject(model, model.encode({Example{source, {"good"}}})[0]);
  }

  // log p of the label after a source of these tokens.
  double answer(const std::vector<std::string>& tokens) const {
    EncodedPair pair = model.encode({Example{"a", {"good"}}})[0];
    pair.source = model.source_vocabulary.encode(tokens);
    const Subject read = make_subject(model, pair);
    return trace_network(read.network(), read.batch).log_probabilities[0][0].item<double>();
  }
};

const std::vector<std::string> layers = {"model.depth=8", "model.heads=2", "model.layers=2",
                                         "model.feed_forward=10", "model.pooling=first"};

TEST(SpecialTokens, AreThoseOfTheTokenizer) {
  const Classifier small(layers);
  const Subject subject = small.subject("a b c");
  EXPECT_THAT(subject.source, ElementsAre("[CLS]", "a", "b", "c", "[SEP]"));
  EXPECT_EQ(special_tokens(subject).before, 1);
  EXPECT_EQ(special_tokens(subject).after, 1);
  EXPECT_EQ(small.model.source_vocabulary.token(unknown_token(small.model)), "[UNK]");
  const test::SmallModel words = test::small_model("classifier_mean");
  EXPECT_TRUE(text_tokens(words.subject()).all().item<bool>());
  EXPECT_EQ(unknown_token(words.model), Vocabulary::unknown);
}

TEST(SpecialTokens, StayWhereOcclusionLeavesTokensOut) {
  const Classifier small(layers);
  const Subject subject = small.subject("a b c");
  const Tensor scores = method_scores(find_method("occlusion"), subject)[0];
  const double whole = small.answer({"[CLS]", "a", "b", "c", "[SEP]"});
  EXPECT_EQ(scores[0].item<double>(), 0);
  EXPECT_EQ(scores[4].item<double>(), 0);
  EXPECT_NEAR(scores[1].item<double>(), whole - small.answer({"[CLS]", "b", "c", "[SEP]"}), 1e-9);
  EXPECT_NEAR(scores[3].item<double>(), whole - small.answer({"[CLS]", "a", "b", "[SEP]"}), 1e-9);
  // Removes all three tokens at once.
  const Tensor together = method_scores(find_method("occlusion"), subject, {.max_passes = 1})[0];
  EXPECT_NEAR(together.sum().item<double>(), whole - small.answer({"[CLS]", "[SEP]"}), 1e-9);
  EXPECT_EQ(together[0].item<double>(), 0);
}

TEST(SpecialTokens, StayWhereIntegratedGradientsBegin) {
  const Classifier small(layers);
  const Tensor scores =
      method_scores(find_method("integrated_gradients"), small.subject("a b c"))[0];
  const double difference = small.answer({"[CLS]", "a", "b", "c", "[SEP]"}) -
                            small.answer({"[CLS]", "[UNK]", "[UNK]", "[UNK]", "[SEP]"});
  EXPECT_NE(difference, 0);
  EXPECT_NEAR(scores.sum().item<double>(), difference, 0.01 * std::abs(difference));
  EXPECT_EQ(scores[0].item<double>(), 0);
  EXPECT_EQ(scores[4].item<double>(), 0);
}

TEST(SpecialTokens, AreNeitherErasedNorRanked) {
  const Classifier small(layers);
  const Subject subject = small.subject("a b c d");
  const Explanation explanation(subject);
  EvidenceTester tester(explanation, {.permutations = 5, .steps = 3, .networks = 1});
  const MethodRow& method = find_method("gradient");
  const Tensor scores = method_scores(method, subject, explanation.trace());
  Tensor other = scores.clone();
  other.select(1, 0).fill_(1e6);
  other.select(1, 5).fill_(2e6);
  const auto before = tester.measure(method, scores), after = tester.measure(method, other);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    SCOPED_TRACE(before[i].row->name);
    EXPECT_EQ(before[i].figure.missing, nullptr) << "four tokens of the text are ranked";
    EXPECT_EQ(before[i].figure.value, after[i].figure.value);
    EXPECT_EQ(before[i].figure.other, after[i].figure.other);
  }
  const std::string best =
      subject.source[static_cast<size_t>(scores[0].slice(0, 1, 5).argmax().item<int64_t>() + 1)];
  std::vector<std::string> left = subject.source;
  std::erase(left, best);
  const double lost = std::exp(small.answer(subject.source)) - std::exp(small.answer(left));
  // One token at four shares of five; one half is two tokens.
  const auto first = tester.measure(method, scores, {&find_figure("comprehensiveness")});
  std::vector<std::string> rest = left;
  Tensor second = scores[0].slice(0, 1, 5).clone();
  second[second.argmax().item<int64_t>()] = -1;
  std::erase(rest, subject.source[static_cast<size_t>(second.argmax().item<int64_t>() + 1)]);
  const double more = std::exp(small.answer(subject.source)) - std::exp(small.answer(rest));
  EXPECT_NEAR(first[0].figure.value, (4 * lost + more) / 5, 1e-9);
}

TEST(SpecialTokens, MayBeAllThatASourceHas) {
  const Classifier small(layers);
  EncodedPair pair = small.model.encode({Example{"a", {"good"}}})[0];
  pair.source = small.model.source_vocabulary.encode({"[CLS]", "[SEP]"});
  const Subject subject = make_subject(small.model, pair);
  EXPECT_EQ(method_scores(find_method("occlusion"), subject).abs().max().item<double>(), 0);
  const Explanation explanation(subject);
  EvidenceTester tester(explanation, {.permutations = 5, .steps = 3, .networks = 1});
  const MethodRow& method = find_method("gradient");
  for (const MeasuredFigure& one : tester.measure(method, method_scores(method, subject)))
    EXPECT_NE(one.figure.missing, nullptr) << one.row->name;
}

}  // namespace special_tokens_test
}  // namespace attend
