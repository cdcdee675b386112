// Whole answers of a model with the weights that it begins with: what they say does not matter
// here.
#include "attend/inference/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

PairModel small_model(const std::vector<Example>& examples) {
  torch::manual_seed(3);
  ModelConfig config;
  config.seq2seq.embedding = config.seq2seq.hidden = config.seq2seq.attention_depth = 8;
  config.seq2seq.maximum_source_length = 6;
  PairModel model = make_pair_model({}, config, examples);
  model.network->eval();
  return model;
}

const std::vector<Example> examples = {{"cab", {"K AE B"}}, {"bad", {"B AE D", "B AA D"}}};
const std::vector<std::string> texts = {"cab", "a", "bad", "dab", "abba", "", "cd", "baac"};

TEST(Predictor, AnswersEachTextAloneInAnyCompany) {
  const PairModel model = small_model(examples);
  const Decoding decoding{.search = {.beam = 3}};
  Predictor one(model, model.network, 1);
  const auto wanted = one.predict(texts, decoding);
  ASSERT_EQ(wanted.size(), texts.size());
  std::vector<std::string> backwards = texts;
  std::reverse(backwards.begin(), backwards.end());
  for (const int64_t threads : {1, 2, 3}) {
    Predictor predictor(model, model.network, threads);
    const auto found = predictor.predict(backwards, decoding);
    for (size_t i = 0; i < texts.size(); ++i) {
      const Prediction &a = wanted[i], &b = found[texts.size() - 1 - i];
      EXPECT_EQ(a.source, b.source);
      ASSERT_EQ(a.hypotheses.size(), b.hypotheses.size()) << texts[i];
      for (size_t n = 0; n < a.hypotheses.size(); ++n) {
        EXPECT_EQ(a.hypotheses[n].tokens, b.hypotheses[n].tokens);
        EXPECT_EQ(a.hypotheses[n].score, b.hypotheses[n].score);
      }
    }
  }
}

TEST(Predictor, SaysWhatWasReadAndHowFarItIs) {
  const PairModel model = small_model(examples);
  Predictor predictor(model, model.network, 1);
  int64_t last = 0;
  const auto report = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, 2);
    last = done;
  };
  const auto found = predictor.predict({"abcdabcd", "", "ab"}, {}, report);
  EXPECT_EQ(last, 2);
  EXPECT_TRUE(found[0].cut);
  EXPECT_EQ(found[0].source.size(), 6U);
  EXPECT_TRUE(found[1].hypotheses.empty());
  EXPECT_FALSE(found[2].cut);
  EXPECT_THAT([&] { predictor.predict({"abcdabcd"}, {.strict = true}); },
              ThrowsMessage<Error>(HasSubstr("has over 6 tokens")));
}

TEST(Predictor, AnEnsembleOfOneModelTwiceAnswersAsThatModel) {
  const PairModel model = small_model(examples);
  Predictor one(model, model.network, 1), twice(model, model.network, 1, {model.network});
  const std::vector<EncodedPair> pairs = model.encode(examples);
  const auto alone = one.log_probabilities(pairs), together = twice.log_probabilities(pairs);
  for (size_t i = 0; i < pairs.size(); ++i) EXPECT_NEAR(alone[i], together[i], 1e-5);
  EXPECT_NEAR(one.loss(pairs), twice.loss(pairs), 1e-5);
}

TEST(Predictor, EvaluationCountsByLengthOfTheSource) {
  const PairModel model = small_model(examples);
  Predictor predictor(model, model.network, 1);
  const Evaluation evaluation = evaluate(predictor, model, examples, {});
  EXPECT_EQ(evaluation.answers.size(), 2U);
  EXPECT_EQ(evaluation.lengths, (std::vector<int64_t>{3, 3}));
  ASSERT_EQ(evaluation.by_length.size(), 1U);
  EXPECT_EQ(evaluation.by_length.begin()->first, 3);
  EXPECT_EQ(evaluation.by_length.begin()->second.token_error_rate(),
            evaluation.errors.token_error_rate());
}

}  // namespace
}  // namespace attend
