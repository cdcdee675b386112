// Tests of whole answers of untrained models; their text does not matter.
#include "attend/inference/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attend/inference/evaluation.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/seq2seq_config.h"
#include "attend/models/transformer_config.h"
#include "tests/support/software_device.h"
#include "tests/support/test_sink.h"

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
  Predictor one(model, {.threads = 1});
  const auto wanted = one.answer(texts, search);
  ASSERT_EQ(wanted.size(), texts.size());
  std::vector<std::string> backwards = texts;
  std::reverse(backwards.begin(), backwards.end());
  for (const int64_t threads : {1, 2, 3}) {
    Predictor predictor(model, {.threads = threads});
    const auto found = predictor.answer(backwards, search);
    for (size_t i = 0; i < texts.size(); ++i) {
      const Answer &a = wanted[i], &b = found[texts.size() - 1 - i];
      EXPECT_EQ(a.source, b.source);
      ASSERT_EQ(a.candidates.size(), b.candidates.size()) << texts[i];
      for (size_t n = 0; n < a.candidates.size(); ++n) {
        EXPECT_EQ(a.candidates[n].tokens, b.candidates[n].tokens);
        EXPECT_EQ(a.candidates[n].score, b.candidates[n].score);
      }
    }
  }
}

// Beams with and without a prefix, n-best lists and packed ensembles: bit-identical.
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
    const std::vector<std::shared_ptr<PairNetwork>> others(networks - 1, model.network);
    Predictor one(model, {.threads = 1}, others);
    one.pack(weights);
    EXPECT_TRUE(model.network->pads_exactly()) << "texts of several lengths share a batch";
    const auto wanted = one.answer(texts, search, prefixes);
    for (const int64_t threads : {1, 2, 8}) {
      Predictor predictor(model, {.threads = threads}, others);
      const auto found = predictor.answer(backwards, search, prefixes_backwards);
      for (size_t i = 0; i < texts.size(); ++i) {
        const auto &a = wanted[i].candidates, &b = found[texts.size() - 1 - i].candidates;
        ASSERT_EQ(a.size(), b.size()) << texts[i];
        for (size_t n = 0; n < a.size(); ++n) {
          EXPECT_EQ(a[n].tokens, b[n].tokens);
          EXPECT_EQ(a[n].log_probabilities, b[n].log_probabilities);
        }
      }
    }
  }
}

// An overfitted Transformer gives the same answers with rounded weights, at similar probabilities.
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
  Predictor predictor(model, {.threads = 1});
  predictor.pack();
  const auto floats = predictor.answer({"cab", "bad"}, {});
  for (const WeightType weights : {WeightType::bfloat16, WeightType::int8}) {
    predictor.pack(weights);
    const auto rounded = predictor.answer({"cab", "bad"}, {});
    for (size_t i = 0; i < floats.size(); ++i) {
      const Candidate &a = floats[i].candidates[0], &b = rounded[i].candidates[0];
      EXPECT_EQ(a.tokens.size(), 3);
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_NE(a.log_probability, b.log_probability);
      EXPECT_NEAR(a.log_probability, b.log_probability, 0.05);
    }
  }
}

TEST(Predictor, RefusesRoundedWeightsForAModelWithoutStepsForThem) {
  ModelConfig config;
  config.type = "transformer";
  config.of<TransformerConfig>().experts = 2;
  const PairModel model = make_pair_model({}, config, examples);
  Predictor predictor(model, {.threads = 1});
  EXPECT_NO_THROW(predictor.pack());
  for (const WeightType weights : {WeightType::bfloat16, WeightType::int8})
    EXPECT_THAT([&] { predictor.pack(weights); },
                ThrowsMessage<Error>(HasSubstr("bfloat16 and int8 weights need")));
}

TEST(Predictor, TellsAnswersInOrderWithWhatWasRead) {
  const PairModel model = small_model(examples);
  Predictor predictor(model, {.threads = 2});
  std::vector<size_t> told;
  test::TestSink sink([&](size_t index, const Answer& found) {
    told.push_back(index);
    EXPECT_EQ(found.truncated, index == 0);
    EXPECT_EQ(found.source.size(), (std::vector<size_t>{6, 0, 2})[index]);
    EXPECT_EQ(found.candidates.empty(), index == 1);
  });
  predictor.answer_each(requests_of({"abcdabcd", "", "ab"}, {}, &sink));
  EXPECT_EQ(told, (std::vector<size_t>{0, 1, 2}));
}

TEST(Predictor, WhiteSpaceAsksNothing) {
  const PairModel model = small_model({{"c a", {"K AE"}}});
  Predictor predictor(model, {.threads = 1});
  const auto found = predictor.answer({" \t ", " "}, {});
  for (const Answer& one : found) {
    EXPECT_TRUE(one.candidates.empty());
    EXPECT_TRUE(one.source.empty());
  }
}

TEST(Predictor, RefusesByNumber) {
  const PairModel model = small_model(examples);
  Predictor strict(model, {.threads = 1, .strict = true}), lenient(model, {.threads = 1});
  const auto refused = [](Predictor& predictor, const std::vector<std::string>& texts) {
    try {
      predictor.answer(texts, {});
    } catch (const SourceError& error) {
      return fmt::format("{}: {}", error.index(), error.reason());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(refused(strict, {"ab", "abcdabcd"}), HasSubstr("1: 'abcdabcd' has over 6 tokens"));
  EXPECT_THAT(refused(lenient, {"ab", "a", "\xff"}), testing::StartsWith("2: "));
  EXPECT_THAT(
      [&] {
        lenient.answer({"ab", "cd"}, {}, {"K AE", "K Q"});
      },
      ThrowsMessage<SourceError>(HasSubstr("source 2: the answer cannot begin with 'Q', which "
                                           "is not one of the 5 tokens of the model")));
  EXPECT_THAT(
      [&] {
        lenient.answer({"ab"}, {}, {"K", "AE"});
      },
      ThrowsMessage<Error>(HasSubstr("2 prefixes for 1 sources")));
}

// Answers before an unreadable text are reported first.
TEST(Predictor, TellsWhatComesBeforeABadText) {
  const PairModel model = small_model(examples);
  const std::vector<std::string> texts = {"ab", "cd", "\xff", "dab"}, prefixes = {"", "", "", "Q"};
  std::vector<size_t> told;
  std::vector<std::string> errors(texts.size());
  test::TestSink sink([&](size_t index, const Answer& found) {
    told.push_back(index);
    errors[index] = found.error;
    EXPECT_EQ(found.candidates.empty(), !found.error.empty());
  });
  Predictor stops(model, {.threads = 2});
  EXPECT_THROW(stops.answer_each(requests_of(texts, {}, &sink, prefixes)), SourceError);
  EXPECT_EQ(told, (std::vector<size_t>{0, 1}));
  told.clear();
  Predictor skips(model, {.threads = 2, .skip_bad = true});
  skips.answer_each(requests_of(texts, {}, &sink, prefixes));
  EXPECT_EQ(told, (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(errors[0] + errors[1], "");
  EXPECT_THAT(errors[2], HasSubstr("UTF-8"));
  EXPECT_THAT(errors[3], HasSubstr("cannot begin with 'Q'"));
  const auto encoded = skips.encodings(texts);
  EXPECT_TRUE(encoded[3].vectors.defined());
  EXPECT_FALSE(encoded[2].vectors.defined());
  EXPECT_THAT(encoded[2].error, HasSubstr("UTF-8"));
  EXPECT_THROW(stops.encodings(texts), SourceError);
}

TEST(Predictor, WhatTakeThrowsIsTheLastThatIsTold) {
  const PairModel model = small_model(examples);
  Predictor predictor(model, {.threads = 4});
  const std::vector<std::string> many(100, "cab");
  for (int round = 0; round < 10; ++round) {
    int told = 0;
    test::TestSink sink([&](size_t, const Answer& found) {
      EXPECT_EQ(found.candidates.size(), 1U);
      ++told;
      throw std::runtime_error("enough");
    });
    EXPECT_THAT([&] { predictor.answer_each(requests_of(many, {}, &sink)); },
                ThrowsMessage<std::runtime_error>("enough"));
    EXPECT_EQ(told, 1);
  }
}

TEST(Predictor, TakeMayAskTheModel) {
  const PairModel model = small_model(examples);
  for (const int64_t threads : {1, 2}) {
    Predictor predictor(model, {.threads = threads});
    const auto wanted = predictor.answer({"bad"}, {})[0].best().tokens;
    int told = 0;
    test::TestSink sink([&](size_t, const Answer&) {
      ++told;
      EXPECT_EQ(predictor.answer({"bad"}, {})[0].best().tokens, wanted);
    });
    predictor.answer_each(requests_of(texts, {}, &sink));
    EXPECT_EQ(told, std::ssize(texts));
  }
}

// Models that prefer padding, the start and the unknown token: recurrent and Transformer, with
// packed steps and by LibTorch, single and as an ensemble.
TEST(Predictor, NeverAnswersWhatIsNoToken) {
  for (const char* type : {"seq2seq", "transformer"}) {
    torch::manual_seed(3);
    ModelConfig config;
    config.type = type;
    if (config.type == "transformer") config.of<TransformerConfig>().tied = Tied::none;
    const PairModel model = make_pair_model({}, config, examples);
    model.network->eval();
    at::Tensor bias = model.network->named_parameters()["output.bias"].detach();
    bias.slice(0, 0, 2).fill_(9);
    bias[Vocabulary::unknown].fill_(9);
    for (const size_t networks : {1, 2}) {
      Predictor predictor(model, {.threads = 2}, std::vector(networks - 1, model.network));
      for (const bool packed : {false, true}) {
        if (packed) predictor.pack();
        for (SearchOptions search :
             {SearchOptions{}, SearchOptions{.beam = 4, .nbest = 4},
              SearchOptions{.nbest = 20, .sampling = Sampling{.temperature = 2}}}) {
          search.minimum_length = 3;
          search.maximum_length = 5;
          for (const Answer& found : predictor.answer(texts, search))
            for (const Candidate& hypothesis : found.candidates)
              for (const int64_t token : hypothesis.ids)
                EXPECT_GT(token, Vocabulary::unknown) << type << networks << packed;
          search.unknown = UnknownTokens::keep;
          const auto kept = predictor.answer({"cab"}, search)[0];
          EXPECT_THAT(kept.candidates[0].tokens, testing::Contains("<unk>"));
          EXPECT_THAT(kept.candidates[0].ids, testing::Each(testing::Ge<int64_t>(Vocabulary::eos)));
        }
      }
    }
  }
}

// The unknown token is replaced by the source token with the largest weight.
TEST(Predictor, CopiesWhatIsAttendedTo) {
  const PairModel model = small_model(examples);
  model.network->named_parameters()["output.bias"].detach()[Vocabulary::unknown].fill_(9);
  Predictor predictor(model, {.threads = 2});
  const SearchOptions keep{
      .maximum_length = 4, .with_weights = true, .unknown = UnknownTokens::keep};
  const SearchOptions copy{.maximum_length = 4, .unknown = UnknownTokens::copy};
  const auto kept = predictor.answer({"cazb", "qab"}, keep);
  const auto copied = predictor.answer({"cazb", "qab"}, copy);
  EXPECT_EQ(kept[0].unknown, (std::vector<std::string>{"z"}));
  EXPECT_EQ(kept[1].unknown, (std::vector<std::string>{"q"}));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(kept[i].candidates[0].tokens, std::vector<std::string>(4, "<unk>"));
    const Candidate& hypothesis = kept[i].candidates[0];
    EXPECT_EQ(copied[i].candidates[0].log_probabilities, hypothesis.log_probabilities);
    EXPECT_TRUE(copied[i].candidates[0].weights.empty()) << "the options request no weights";
    for (size_t t = 0; t < 4; ++t) {
      const std::vector<float>& row = hypothesis.weights[t];
      const auto place = std::max_element(row.begin(), row.end()) - row.begin();
      EXPECT_EQ(copied[i].candidates[0].tokens[t], kept[i].source[static_cast<size_t>(place)]);
    }
  }
}

TEST(Predictor, CopiesUnlessTold) {
  torch::manual_seed(3);
  ModelConfig config;
  config.of<Seq2SeqConfig>().copy = true;
  TextConfig text;
  text.target_units = "char";
  text.joint_vocabulary = true;
  const PairModel copies = make_pair_model(text, config, examples);
  copies.network->eval();
  // The gate only copies and never generates.
  copies.network->named_parameters()["gate.bias"].detach().fill_(-30);
  Predictor predictor(copies, {.threads = 1});
  const Answer found = predictor.answer({"zz"}, {.maximum_length = 3})[0];
  EXPECT_EQ(found.candidates[0].tokens, std::vector<std::string>(3, "z"));
  const Answer without =
      predictor.answer({"zz"}, {.maximum_length = 3, .unknown = UnknownTokens::forbid})[0];
  for (const std::string& token : without.candidates[0].tokens) EXPECT_NE(token, "<unk>");
  config = {};
  config.of<Seq2SeqConfig>().score = "none";
  const PairModel blind = make_pair_model({}, config, examples);
  EXPECT_THAT(
      [&] { Predictor(blind, {.threads = 1}).answer({"ab"}, {.unknown = UnknownTokens::copy}); },
      ThrowsMessage<Error>(HasSubstr("the model attends to nothing; forbid or keep")));
}

TEST(Predictor, KeepsTheMinimumLength) {
  const PairModel model = small_model(examples);
  model.network->named_parameters()["output.bias"].detach()[Vocabulary::eos].fill_(9);
  Predictor predictor(model, {.threads = 1});
  EXPECT_EQ(predictor.answer({"cab"}, {.minimum_length = 50})[0].candidates[0].tokens.size(), 50U);
}

// Answers are as long as the number of positions after the start.
TEST(Predictor, LearnedPositionsEndAnswers) {
  torch::manual_seed(3);
  ModelConfig config;
  config.type = "transformer";
  config.of<TransformerConfig>().positions = Positions::learned;
  config.of<TransformerConfig>().maximum_source_length = 2;
  const PairModel model = make_pair_model({}, config, examples);
  model.network->eval();
  const int64_t maximum = model.network->maximum_answer_length();
  EXPECT_EQ(maximum, longest_answer(2));
  const auto begin = [](int64_t tokens) {
    std::string text = "K";
    for (int64_t i = 1; i < tokens; ++i) text += " K";
    return text;
  };
  Predictor predictor(model, {.threads = 1});
  const SearchOptions search{.minimum_length = maximum, .maximum_length = 1000};
  const auto found = predictor.answer({"ca", "ca"}, search, {"", begin(maximum)});
  for (const Answer& each : found) {
    EXPECT_EQ(std::ssize(each.candidates[0].tokens), maximum);
  }
  EXPECT_THAT(
      [&] {
        predictor.answer({"ca", "ca"}, {}, {"", begin(maximum + 1)});
      },
      ThrowsMessage<SourceError>(HasSubstr(
          "source 2: the answer cannot begin with 17 tokens: the model has positions for 16")));
  EXPECT_THAT([&] { predictor.answer({"ca"}, {.minimum_length = maximum + 1}); },
              ThrowsMessage<Error>(HasSubstr("minimum_length 17")));
}

// Rounded weights are only for answers.
TEST(Predictor, PackedWeightsLeaveLikelihoodsAsTheyAre) {
  torch::manual_seed(3);
  ModelConfig config;
  config.type = "transformer";
  const PairModel model = make_pair_model({}, config, examples);
  model.network->eval();
  const std::vector<EncodedPair> pairs = model.encode(examples);
  for (const size_t networks : {1, 2}) {
    Predictor predictor(model, {.threads = 2}, std::vector(networks - 1, model.network));
    predictor.pack();
    const auto wanted = predictor.log_probabilities(pairs);
    const double loss = predictor.loss(pairs);
    predictor.pack(WeightType::int8);
    EXPECT_EQ(predictor.log_probabilities(pairs), wanted);
    EXPECT_EQ(predictor.loss(pairs), loss);
  }
}

TEST(Predictor, AnEnsembleOfOneModelTwiceAnswersAsThatModel) {
  const PairModel model = small_model(examples);
  Predictor one(model, {.threads = 1}), twice(model, {.threads = 1}, {model.network});
  const std::vector<EncodedPair> pairs = model.encode(examples);
  const auto alone = one.log_probabilities(pairs), together = twice.log_probabilities(pairs);
  for (size_t i = 0; i < pairs.size(); ++i) EXPECT_NEAR(alone[i], together[i], 1e-5);
  EXPECT_NEAR(one.loss(pairs), twice.loss(pairs), 1e-5);
}

TEST(Predictor, EvaluationTellsTheLengthOfEachSource) {
  const PairModel model = small_model(examples);
  const Evaluation evaluation = evaluate(Model(model), examples, {});
  EXPECT_EQ(evaluation.answers.size(), 2U);
  EXPECT_EQ(evaluation.source_lengths(), (std::vector<int64_t>{3, 3}));
}

// Tokens are chosen on the device as on the CPU: greedily, in a beam, by sampling and after a
// prefix.
TEST(Predictor, AnswersFromAnotherDeviceAsOnTheCpu) {
  const PairModel here = small_model(examples), there = small_model(examples);
  Predictor on_cpu(here, {.threads = 1}), placed(there, {.threads = 2});
  const at::Device device = reference::software_device(0);
  placed.place({device, device, device});
  const Sampling sampling{.top_k = 4, .top_p = 0.9};
  for (const SearchOptions& search : {SearchOptions{}, SearchOptions{.beam = 3, .nbest = 3},
                                      SearchOptions{.nbest = 2, .sampling = sampling}}) {
    const std::vector<std::string> prefixes(texts.size(), "K");
    const auto wanted = on_cpu.answer(texts, search, prefixes);
    const auto found = placed.answer(texts, search, prefixes);
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(found[i].candidates.size(), wanted[i].candidates.size()) << texts[i];
      for (size_t n = 0; n < found[i].candidates.size(); ++n) {
        const Candidate &a = found[i].candidates[n], &b = wanted[i].candidates[n];
        EXPECT_EQ(a.tokens, b.tokens) << texts[i];
        EXPECT_NEAR(a.log_probability, b.log_probability, 1e-4);
      }
    }
  }
}

}  // namespace predictor_test
}  // namespace attend
