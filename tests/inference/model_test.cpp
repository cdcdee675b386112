// Tests of untrained models of every type, loaded from a folder. The answers do not matter, only
// that all calls agree.
#include "attend/inference/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "attend/inference/answer_json.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/predictor.h"
#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/pair_model.h"
#include "attend/models/parameters_file.h"
#include "tests/models/networks.h"
#include "tests/support/files.h"
#include "tests/support/test_sink.h"

namespace attend {
namespace model_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<Example> examples = {{"cab", {"K"}}, {"bad", {"B"}}, {"dab", {"K"}}};
const std::vector<std::string> texts = {"cab", "a", "bad", "abba", "", "dabcabba", "b"};

class ModelTest : public testing::Test {
 protected:
  PairModel in_memory(const std::string& type, uint64_t seed, const std::string& setting) {
    ModelConfig config = test::SomeNetwork{
        type,
        {"model.maximum_source_length=6", "model.context=16",
         setting}}.config();
    TextConfig text = config.row().text;
    text.source_units = "char";
    if (config.row().answers->is_text()) text.target_units = "char";
    torch::manual_seed(static_cast<int64_t>(seed));
    PairModel model = make_pair_model(text, config, examples);
    model.network->eval();
    return model;
  }

  // Makes a folder with a model of this type.
  std::string make(const std::string& type, uint64_t seed = 3,
                   const std::string& setting = "model.maximum_source_length=6") {
    return save(in_memory(type, seed, setting), fmt::format("{}-{}", type, seed));
  }

  std::string save(const PairModel& model, const std::string& name) {
    std::string folder = this->folder / name;
    std::filesystem::create_directory(folder);
    save_description(model, folder);
    save_weights(*model.network, folder + "/weights.safetensors");
    return folder;
  }

  test::TemporaryFolder folder;
};

// The sum of a row of weights.
float sum(const std::vector<float>& row) { return std::accumulate(row.begin(), row.end(), 0.0F); }

class EveryType : public ModelTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, EveryType,
                         testing::Values("seq2seq", "transformer", "classifier", "tagger", "lm",
                                         "encoder"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EveryType, AnswersAsItScores) {
  const Model model(make(GetParam()), {.threads = 2});
  const auto answers = model.answer(texts, {.beam = 2, .nbest = 2, .maximum_length = 4});
  ASSERT_EQ(answers.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(answers[i].truncated, i == 5 && model.maximum_source_length() < 8);
    for (const Candidate& candidate : answers[i].candidates) {
      EXPECT_NEAR(std::accumulate(candidate.log_probabilities.begin(),
                                  candidate.log_probabilities.end(), 0.0),
                  candidate.log_probability, 1e-5);
      if (!candidate.complete || candidate.tokens.empty() || model.answer_kind().fills()) continue;
      const auto scored = model.log_probabilities({{texts[i], {candidate.text}}});
      EXPECT_NEAR(scored[0], candidate.log_probability, 1e-4) << texts[i];
    }
  }
}

// Answers, scores, weights and figures are bit-identical; the network may be trained further.
TEST_P(EveryType, ANetworkInMemoryAnswersAsItsFolder) {
  const PairModel made = in_memory(GetParam(), 5, "model.context=16");
  const Model folder(save(made, "saved")), memory(made);
  const SearchOptions search{
      .beam = 2, .nbest = 2, .maximum_length = 4, .with_weights = memory.attends()};
  const auto wanted = folder.answer(texts, search), found = memory.answer(texts, search);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(answer_json(memory, texts[i], found[i], /*details=*/true),
              answer_json(folder, texts[i], wanted[i], /*details=*/true));
  const std::vector<Example> measured =
      memory.answer_kind().is_tags() ? std::vector<Example>{{"cab", {"K B K"}}, {"bad", {"B B K"}}}
                                     : examples;
  EXPECT_EQ(memory.log_probabilities(measured), folder.log_probabilities(measured));
  const auto answers = evaluate(memory, measured, search).answers;
  const auto same = evaluate(folder, measured, search).answers;
  ASSERT_EQ(answers.size(), same.size());
  for (size_t i = 0; i < same.size(); ++i) EXPECT_EQ(answers[i].tokens, same[i].tokens);
  for (const at::Tensor& weight : made.network->parameters()) EXPECT_TRUE(weight.requires_grad());
}

TEST_F(ModelTest, ANetworkInMemoryAnswersWithTheWeightsOfItsMoment) {
  const PairModel made = in_memory("seq2seq", 5, "model.context=16");
  const auto score = [](const Model& model) { return model.answer({"cab"})[0].best().score; };
  const Model before(made);
  const double first = score(before);
  {
    const at::NoGradGuard not_recorded;
    for (at::Tensor& weight : made.network->parameters()) weight.mul_(1.5);
  }
  EXPECT_NE(score(Model(made)), first);
  EXPECT_EQ(score(Model(made)), score(Model(save(made, "later"))));
}

TEST_F(ModelTest, KeepsItsWeightsAsAsked) {
  const auto log_probability = [](const Model& model) {
    return model.answer({"cab"}, {.maximum_length = 4})[0].best().log_probabilities[0];
  };
  for (const char* type : {"transformer", "classifier", "tagger"}) {
    SCOPED_TRACE(type);
    const std::string folder = make(type);
    const double whole = log_probability(Model(folder));
    for (const WeightType weights : {WeightType::bfloat16, WeightType::int8}) {
      const double rounded = log_probability(Model(folder, {.weights = weights}));
      EXPECT_NE(rounded, whole);
      EXPECT_NEAR(rounded, whole, 0.1);
    }
  }
  for (const WeightType weights : {WeightType::bfloat16, WeightType::int8})
    EXPECT_THAT([&] { Model(make("set"), {.weights = weights}); },
                ThrowsMessage<Error>(HasSubstr("take float32")));
}

TEST_P(EveryType, WeightsAreOfTheSourceThatWasRead) {
  const Model model(make(GetParam()));
  EXPECT_EQ(model.attends(), model.no_weights_reason().empty());
  const auto answers = model.answer(texts, {.maximum_length = 3, .with_weights = true});
  for (const Answer& answer : answers) {
    if (answer.candidates.empty()) continue;
    const Candidate& best = answer.best();
    EXPECT_EQ(best.weights.size(), best.tokens.size());
    for (const std::vector<float>& row : best.weights) {
      EXPECT_EQ(row.size(), answer.source.size());
      EXPECT_LE(sum(row), 1 + 1e-5);
    }
  }
}

TEST_P(EveryType, ManyThreadsMayAskAtOnce) {
  const Model model(make(GetParam()), {.threads = 2});
  const SearchOptions search{.beam = 2, .maximum_length = 4, .with_weights = true};
  const auto wanted = model.answer(texts, search);
  std::vector<std::thread> askers;
  std::array<std::vector<Answer>, 4> found;
  for (size_t t = 0; t < found.size(); ++t)
    askers.emplace_back([&, t] {
      // Each thread asks in another order, with other batches.
      for (size_t i = 0; i < texts.size(); ++i)
        found[t].push_back(model.answer({texts[(i + t) % texts.size()]}, search)[0]);
    });
  for (std::thread& asker : askers) asker.join();
  for (size_t t = 0; t < found.size(); ++t)
    for (size_t i = 0; i < texts.size(); ++i) {
      const Answer &a = wanted[(i + t) % texts.size()], &b = found[t][i];
      ASSERT_EQ(a.candidates.size(), b.candidates.size());
      if (a.candidates.empty()) continue;
      EXPECT_EQ(a.best().text, b.best().text);
      EXPECT_EQ(a.best().log_probabilities, b.best().log_probabilities);
      EXPECT_EQ(a.best().weights, b.best().weights);
    }
}

TEST_P(EveryType, EmbedsEveryToken) {
  const Model model(make(GetParam()));
  const auto embeddings = model.embed({"cab", "", "ab"});
  ASSERT_EQ(embeddings.size(), 3U);
  EXPECT_EQ(embeddings[0].tokens, (std::vector<std::string>{"c", "a", "b"}));
  EXPECT_GT(embeddings[0].depth, 0);
  EXPECT_EQ(embeddings[0].vectors.size(), static_cast<size_t>(3 * embeddings[0].depth));
  EXPECT_EQ(embeddings[2].whole.size(), static_cast<size_t>(embeddings[2].depth));
  EXPECT_TRUE(embeddings[1].whole.empty());
  EXPECT_EQ(model.embed({"xx", "cab"})[1].vectors, embeddings[0].vectors) << "the company counts";
}

TEST_P(EveryType, AnEnsembleOfTwiceTheSameIsThatModel) {
  const std::string folder = make(GetParam());
  const Model one(folder), two = Model::ensemble({folder, folder});
  const SearchOptions search{.maximum_length = 3};
  const auto alone = one.answer(texts, search), together = two.answer(texts, search);
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(alone[i].candidates.size(), together[i].candidates.size());
    if (!alone[i].candidates.empty()) {
      EXPECT_NEAR(alone[i].best().log_probability, together[i].best().log_probability, 1e-4);
    }
  }
  EXPECT_THAT([&] { two.embed({"cab"}); }, ThrowsMessage<Error>(HasSubstr("load one of them")));
}

// No member reads more tokens than it has positions.
TEST_F(ModelTest, AnEnsembleReadsWhatEachOfItsModelsReads) {
  const std::string longer = make("transformer", 3),
                    shorter = make("transformer_shared", 4, "model.maximum_source_length=4");
  for (const auto& folders : {std::vector{longer, shorter}, {shorter, longer}}) {
    const Model model = Model::ensemble(folders);
    EXPECT_EQ(model.maximum_source_length(), 4);
    const auto answers = model.answer({"cabba", "cabb"}, {.minimum_length = 20});
    EXPECT_TRUE(answers[0].truncated);
    EXPECT_FALSE(answers[1].truncated);
    EXPECT_EQ(answers[0].best().tokens, answers[1].best().tokens);
  }
}

TEST_F(ModelTest, SaysWhatItDoesNotKnowOrCannotRead) {
  const Model model(make("seq2seq"), {.skip_bad = true});
  const auto answers = model.answer({"cxaby", "\xff", "cab"}, {.maximum_length = 3});
  EXPECT_EQ(answers[0].unknown, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(answers[0].error, "");
  EXPECT_THAT(answers[1].error, HasSubstr("UTF-8"));
  EXPECT_TRUE(answers[1].candidates.empty());
  EXPECT_TRUE(answers[2].unknown.empty());
  EXPECT_FALSE(answers[2].candidates.empty());
}

TEST_F(ModelTest, AnswersAreToldInOrderAndMayEndTheCall) {
  const Model model(make("seq2seq"), {.threads = 3});
  std::vector<size_t> told;
  test::TestSink sink([&](size_t index, const Answer&) { told.push_back(index); });
  model.answer_each(requests_of(texts, {}, &sink));
  std::vector<size_t> all(texts.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(told, all);
  test::TestSink stops([](size_t index, const Answer&) {
    if (index == 2) throw std::runtime_error("enough");
  });
  EXPECT_THAT([&] { model.answer_each(requests_of(texts, {}, &stops)); },
              ThrowsMessage<std::runtime_error>("enough"));
  EXPECT_EQ(model.answer(texts).size(), texts.size()) << "the model continues";
}

TEST_F(ModelTest, PrefixesAndDraws) {
  const Model model(make("seq2seq"));
  const auto begun = model.answer({"cab", "bad"}, {.maximum_length = 2}, {"B", "K"});
  EXPECT_EQ(begun[0].best().tokens[0], "B");
  EXPECT_EQ(begun[1].best().tokens[0], "K");
  const auto drawn = [&](const std::string& text, size_t number) {
    std::string all;
    test::TestSink sink([&](size_t, const Answer& answer) {
      for (const Candidate& candidate : answer.candidates) all += candidate.text + "|";
    });
    auto requests = requests_of(
        {text}, {.nbest = 20, .maximum_length = 9, .sampling = Sampling{.seed = 7}}, &sink);
    requests[0].number = number;
    model.answer_each(requests);
    return all;
  };
  EXPECT_EQ(drawn("cab", 0), drawn("cab", 0));
  EXPECT_NE(drawn("cab", 0), drawn("cab", 1)) << "every source has random numbers of its own";
}

TEST_F(ModelTest, LabelsHaveProbabilities) {
  const Model model(make("classifier"));
  EXPECT_EQ(model.labels(), (std::vector<std::string>{"K", "B"}));
  const auto found = model.classify({"cab", "", "dab"});
  EXPECT_TRUE(found[1].empty());
  for (const size_t i : {0, 2}) {
    ASSERT_EQ(found[i].size(), 2U);
    EXPECT_NEAR(found[i][0].probability + found[i][1].probability, 1, 1e-6);
    EXPECT_GE(found[i][0].probability, found[i][1].probability);
    const Answer answer = model.answer({i == 0 ? "cab" : "dab"})[0];
    EXPECT_EQ(answer.best().text, found[i][0].token);
    EXPECT_NEAR(std::exp(answer.best().log_probability), found[i][0].probability, 1e-6);
  }
  const Model other(make("seq2seq"));
  EXPECT_TRUE(other.labels().empty());
  EXPECT_THAT([&] { other.classify({"cab"}); }, ThrowsMessage<Error>(HasSubstr("has no labels")));
}

TEST_F(ModelTest, TellsTokensOfTextsAndTextsOfTokens) {
  const Model model(make("seq2seq"));
  const auto tokens = model.tokenise("caxb");
  ASSERT_EQ(tokens.size(), 4U);
  std::vector<int64_t> ids;
  for (const SourceToken& token : tokens) {
    EXPECT_EQ(token.is_known, token.text != "x");
    ids.push_back(token.id);
  }
  EXPECT_THAT([&] { model.source_text(ids); },
              ThrowsMessage<Error>(HasSubstr("token id 3 does not exist")));
  ids.erase(ids.begin() + 2);
  EXPECT_EQ(model.source_text(ids), "cab");
  EXPECT_EQ(model.source_text({}), "");
  for (const int64_t id : {int64_t{-1}, int64_t{2}, int64_t{1} << 40})
    EXPECT_THROW(model.source_text({id}), Error);
}

TEST_F(ModelTest, FillsMasks) {
  const Model model(make("encoder"));
  const auto found = model.fill("c[MASK]b[MASK]", "[MASK]", 2);
  ASSERT_EQ(found.size(), 2U);
  for (const auto& place : found) {
    ASSERT_EQ(place.size(), 2U);
    EXPECT_GE(place[0].probability, place[1].probability);
  }
  const auto all = model.fill("_ab", "_", 100);
  double total = 0;
  for (const TokenProbability& each : all.at(0)) total += each.probability;
  EXPECT_NEAR(total, 1, 1e-5);
  EXPECT_TRUE(model.fill("cab").empty());
  EXPECT_THAT([&] { model.fill("abcabcabcabcabcabc[MASK]abc"); },
              ThrowsMessage<Error>(HasSubstr("over the 6 that the model reads")));
  EXPECT_THAT([&] { Model(make("lm")).fill("[MASK]"); },
              ThrowsMessage<Error>(HasSubstr("does not fill in masks")));
}

TEST_F(ModelTest, EvaluationCountsByLengthOfTheSource) {
  const Model model(make("seq2seq"));
  int64_t last = 0;
  const Evaluation evaluation = evaluate(model, examples, {}, [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, ++last);
    EXPECT_EQ(total, 3);
  });
  EXPECT_EQ(last, 3);
  EXPECT_EQ(evaluation.source_lengths(), (std::vector<int64_t>{3, 3, 3}));
  const Metric& error = metric_named("token_error");
  EXPECT_EQ(measure_answers(error, evaluation.answers, {}, {3, 3}),
            measure_answers(error, evaluation.answers));
  EXPECT_EQ(measure_answers(error, evaluation.answers, {}, {4, 9}), 0);
  const Likelihood found = likelihood(model, examples);
  const auto scores = model.log_probabilities(examples);
  EXPECT_NEAR(found.nats, -std::accumulate(scores.begin(), scores.end(), 0.0), 1e-4);
  EXPECT_EQ(found.tokens, 6) << "each target and its end";
  EXPECT_EQ(found.bytes, 6);
  EXPECT_THAT([&] { likelihood_of_text(model, "cab"); },
              ThrowsMessage<Error>(HasSubstr("does not continue text")));
}

TEST_F(ModelTest, AnswersAsJsonNameTheirTokensInDetail) {
  const Model model(make("seq2seq"));
  const Answer answer = model.answer({"cab"}, {.with_weights = true})[0];
  const nlohmann::json whole = answer_json(model, "cab", answer, /*details=*/true);
  EXPECT_EQ(whole["source_tokens"], answer.source);
  const nlohmann::json& best = whole["predictions"][0];
  EXPECT_EQ(best["target"], answer.best().text);
  EXPECT_EQ(best["tokens"], answer.best().tokens);
  EXPECT_EQ(best["weights"].size(), answer.best().tokens.size());
  EXPECT_FALSE(whole.contains("error"));
  const nlohmann::json brief = answer_json(model, "cab", answer, /*details=*/false);
  EXPECT_FALSE(brief.contains("source_tokens"));
  EXPECT_FALSE(brief["predictions"][0].contains("tokens"));
}

// The total without unknown tokens is the sum over the known tokens.
TEST_F(ModelTest, LikelihoodsTellWhatIsUnknown) {
  const Model model(make("lm"));
  const std::vector<Example> examples = {{"ca", {"bxa"}}, {"b", {"yy"}}};
  const Likelihood found = likelihood(model, examples);
  EXPECT_EQ(found.tokens, 7);
  EXPECT_EQ(found.unknown, 3);
  EXPECT_EQ(found.bytes, 7);
  EXPECT_EQ(found.unknown_bytes, 3);
  Predictor& predictor = Predictor::of(model);
  const auto logs = predictor.token_log_probabilities(predictor.model().encode(examples));
  EXPECT_NEAR(found.known().nats, -(logs[0][0] + logs[0][2] + logs[0][3] + logs[1][2]), 1e-4);
  EXPECT_NEAR(found.unknown_nats, -(logs[0][1] + logs[1][0] + logs[1][1]), 1e-12);
  EXPECT_EQ(likelihood(model, {{"ca", {"ba"}}}).unknown, 0);
  const Likelihood text = likelihood_of_text(model, "cabxcab").likelihood;
  EXPECT_EQ(text.tokens, 7);
  EXPECT_EQ(text.unknown, 1);
  EXPECT_EQ(text.unknown_bytes, 1);
  EXPECT_GT(text.unknown_nats, 0);
  EXPECT_EQ(likelihood_of_text(model, "cab").likelihood.unknown, 0);
}

TEST_F(ModelTest, RefusesWhatItCannotLoad) {
  EXPECT_THAT([&] { Model(folder / "absent"); },
              ThrowsMessage<Error>(HasSubstr("no such model folder")));
  EXPECT_THAT([] { Model::ensemble({}); }, ThrowsMessage<Error>(HasSubstr("no model")));
  const std::string one = make("seq2seq"), other = make("lm");
  EXPECT_THAT(
      [&] {
        Model::ensemble({one, other});
      },
      ThrowsMessage<Error>(HasSubstr("other vocabularies")));
  const Model strict(one, {.strict = true});
  EXPECT_THAT(
      [&] {
        strict.answer({"cab", "dabcabba"});
      },
      ThrowsMessage<SourceError>(HasSubstr("source 2: 'dabcabba' has over 6 tokens")));
  EXPECT_THAT([&] { strict.answer({"cab"}, {.beam = 0}); },
              ThrowsMessage<Error>(HasSubstr("beam must be at least 1")));
  EXPECT_THAT([&] { strict.answer({""})[0].best(); },
              ThrowsMessage<Error>(HasSubstr("empty source")));
}

}  // namespace model_test
}  // namespace attend
