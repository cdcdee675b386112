// Whole answers of a model with the weights that it begins with: what they say does not matter
// here.
#include "attend/inference/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attend/inference/evaluation.h"
#include "attend/models/seq2seq_config.h"
#include "attend/models/transformer_config.h"
#include "tests/support/software_device.h"

namespace attend {
namespace predictor_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

PairModel small_model(const std::vector<Example>& examples) {
  torch::manual_seed(3);
  ModelConfig config;
  auto& sizes = config.of<Seq2SeqConfig>();
  sizes.embedding = sizes.hidden = sizes.attention_depth = 8;
  sizes.maximum_source_length = 6;
  PairModel model = make_pair_model({}, config, examples);
  model.network->eval();
  return model;
}

const std::vector<Example> examples = {{"cab", {"K AE B"}}, {"bad", {"B AE D", "B AA D"}}};
const std::vector<std::string> texts = {"cab", "a", "bad", "dab", "abba", "", "cd", "baac"};

TEST(Predictor, AnswersEachTextAloneInAnyCompany) {
  const PairModel model = small_model(examples);
  const SearchOptions search{.beam = 3};
  Predictor one(model, {model.network}, 1);
  const auto wanted = one.predict(texts, search);
  ASSERT_EQ(wanted.size(), texts.size());
  std::vector<std::string> backwards = texts;
  std::reverse(backwards.begin(), backwards.end());
  for (const int64_t threads : {1, 2, 3}) {
    Predictor predictor(model, {model.network}, threads);
    const auto found = predictor.predict(backwards, search);
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

// Beams with and without a prefix, n-best lists and ensembles of packed networks: to the last bit.
TEST(Predictor, PackedNetworksAnswerEachTextAloneInAnyCompany) {
  torch::manual_seed(3);
  ModelConfig config;
  config.type = "transformer";
  PairModel model = make_pair_model({}, config, examples);
  model.network->eval();
  std::vector<std::string> prefixes(texts.size());
  prefixes[1] = prefixes[6] = "K AE";
  const std::vector<std::string> backwards(texts.rbegin(), texts.rend()),
      prefixes_backwards(prefixes.rbegin(), prefixes.rend());
  const SearchOptions search{.beam = 3, .nbest = 3, .minimum_length = 2};
  using Case = std::pair<size_t, WeightType>;
  for (const auto& [networks, weights] :
       {Case{1, WeightType::float32}, {2, WeightType::float32}, {1, WeightType::bfloat16}}) {
    const std::vector<std::shared_ptr<PairNetwork>> same(networks, model.network);
    Predictor one(model, same, 1);
    one.pack(weights);
    const auto wanted = one.predict(texts, search, prefixes);
    for (const int64_t threads : {1, 2, 8}) {
      Predictor predictor(model, same, threads);
      const auto found = predictor.predict(backwards, search, prefixes_backwards);
      for (size_t i = 0; i < texts.size(); ++i) {
        const auto &a = wanted[i].hypotheses, &b = found[texts.size() - 1 - i].hypotheses;
        ASSERT_EQ(a.size(), b.size()) << texts[i];
        for (size_t n = 0; n < a.size(); ++n) {
          EXPECT_EQ(a[n].tokens, b[n].tokens);
          EXPECT_EQ(a[n].log_probabilities, b[n].log_probabilities);
        }
      }
    }
  }
}

// A Transformer that has learned its pairs by heart says the same with rounded weights, with other
// but like probabilities.
TEST(Predictor, RoundedWeightsAnswerAsFloatsDo) {
  torch::manual_seed(3);
  ModelConfig config;
  config.type = "transformer";
  const PairModel model = make_pair_model({}, config, examples);
  const Batch batch = make_batch(model.encode(examples), {0, 1});
  torch::optim::Adam adam(model.network->parameters(), torch::optim::AdamOptions(0.001));
  for (int step = 0; step < 40; ++step) {
    adam.zero_grad();
    model.network->objective(batch, {}, 0).backward();
    adam.step();
  }
  model.network->eval();
  Predictor predictor(model, {model.network}, 1);
  predictor.pack();
  const auto floats = predictor.predict({"cab", "bad"}, {});
  for (const WeightType weights : {WeightType::bfloat16, WeightType::int8}) {
    predictor.pack(weights);
    const auto rounded = predictor.predict({"cab", "bad"}, {});
    for (size_t i = 0; i < floats.size(); ++i) {
      const Hypothesis &a = floats[i].hypotheses[0], &b = rounded[i].hypotheses[0];
      EXPECT_EQ(predictor.best_tokens(floats[i]).size(), 3);
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_NE(a.log_probability, b.log_probability);
      EXPECT_NEAR(a.log_probability, b.log_probability, 0.05);
    }
  }
}

TEST(Predictor, RefusesRoundedWeightsForAModelWithoutStepsForThem) {
  ModelConfig config;
  config.type = "transformer";
  config.of<TransformerConfig>().positions = "rotary";
  const PairModel model = make_pair_model({}, config, examples);
  Predictor predictor(model, {model.network}, 1);
  EXPECT_NO_THROW(predictor.pack());
  for (const WeightType weights : {WeightType::bfloat16, WeightType::int8})
    EXPECT_THAT([&] { predictor.pack(weights); },
                ThrowsMessage<Error>(HasSubstr("weights of bfloat16 and int8 are for")));
}

TEST(Predictor, TellsAnswersInOrderWithWhatWasRead) {
  const PairModel model = small_model(examples);
  Predictor predictor(model, {model.network}, 2);
  std::vector<size_t> told;
  predictor.predict_each({"abcdabcd", "", "ab"}, {}, {}, [&](size_t index, Prediction found) {
    told.push_back(index);
    EXPECT_EQ(found.truncated, index == 0);
    EXPECT_EQ(found.source.size(), (std::vector<size_t>{6, 0, 2})[index]);
    EXPECT_EQ(found.hypotheses.empty(), index == 1);
  });
  EXPECT_EQ(told, (std::vector<size_t>{0, 1, 2}));
}

TEST(Predictor, WhiteSpaceAsksNothing) {
  const PairModel model = small_model({{"c a", {"K AE"}}});
  Predictor predictor(model, {model.network}, 1);
  const auto found = predictor.predict({" \t ", " "}, {});
  for (const Prediction& one : found) {
    EXPECT_TRUE(one.hypotheses.empty());
    EXPECT_TRUE(one.source.empty());
  }
}

TEST(Predictor, RefusesByNumber) {
  const PairModel model = small_model(examples);
  Predictor strict(model, {model.network}, 1, /*strict=*/true), lenient(model, {model.network}, 1);
  const auto refused = [](Predictor& predictor, const std::vector<std::string>& texts) {
    try {
      predictor.predict(texts, {});
    } catch (const SourceError& error) {
      return fmt::format("{}: {}", error.index(), error.reason());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(refused(strict, {"ab", "abcdabcd"}), HasSubstr("1: 'abcdabcd' has over 6 tokens"));
  EXPECT_THAT(refused(lenient, {"ab", "a", "\xff"}), testing::StartsWith("2: "));
  EXPECT_THAT(
      [&] {
        lenient.predict({"ab"}, {}, {"K", "AE"});
      },
      ThrowsMessage<Error>(HasSubstr("2 prefixes for 1 sources")));
}

TEST(Predictor, AnEnsembleOfOneModelTwiceAnswersAsThatModel) {
  const PairModel model = small_model(examples);
  Predictor one(model, {model.network}, 1), twice(model, {model.network, model.network}, 1);
  const std::vector<EncodedPair> pairs = model.encode(examples);
  const auto alone = one.log_probabilities(pairs), together = twice.log_probabilities(pairs);
  for (size_t i = 0; i < pairs.size(); ++i) EXPECT_NEAR(alone[i], together[i], 1e-5);
  EXPECT_NEAR(one.loss(pairs), twice.loss(pairs), 1e-5);
}

TEST(Predictor, EvaluationCountsByLengthOfTheSource) {
  const PairModel model = small_model(examples);
  Predictor predictor(model, {model.network}, 1);
  const Evaluation evaluation = evaluate(predictor, model, examples, {});
  EXPECT_EQ(evaluation.answers.size(), 2U);
  EXPECT_EQ(evaluation.lengths, (std::vector<int64_t>{3, 3}));
  ASSERT_EQ(evaluation.by_length.size(), 1U);
  EXPECT_EQ(evaluation.by_length.begin()->first, 3);
  EXPECT_EQ(evaluation.by_length.begin()->second.token_error_rate(),
            evaluation.errors.token_error_rate());
}

// Choosing among tokens there as here: greedily, in a beam, drawn, and behind a prefix.
TEST(Predictor, AnswersFromAnotherDeviceAsOnTheCpu) {
  const PairModel here = small_model(examples), there = small_model(examples);
  Predictor on_cpu(here, {here.network}, 1), placed(there, {there.network}, 2);
  const at::Device device = reference::software_device(0);
  placed.place({device, device, device});
  const Sampling sampling{.top_k = 4, .top_p = 0.9};
  for (const SearchOptions& search : {SearchOptions{}, SearchOptions{.beam = 3, .nbest = 3},
                                      SearchOptions{.nbest = 2, .sampling = sampling}}) {
    const std::vector<std::string> prefixes(texts.size(), "K");
    const auto wanted = on_cpu.predict(texts, search, prefixes);
    const auto found = placed.predict(texts, search, prefixes);
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(found[i].hypotheses.size(), wanted[i].hypotheses.size()) << texts[i];
      for (size_t n = 0; n < found[i].hypotheses.size(); ++n) {
        const Hypothesis &a = found[i].hypotheses[n], &b = wanted[i].hypotheses[n];
        EXPECT_EQ(a.tokens, b.tokens) << texts[i];
        EXPECT_NEAR(a.log_probability, b.log_probability, 1e-4);
      }
    }
  }
}

}  // namespace predictor_test
}  // namespace attend
