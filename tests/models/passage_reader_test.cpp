#include "attend/models/passage_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/models/new_pair_model.h"
#include "tests/support/files.h"

namespace attend {
namespace passage_reader_test {

using at::Tensor;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr int64_t tokens = 12;

std::shared_ptr<PassageReader> small(bool output_layer = false) {
  torch::manual_seed(5);
  PassageReaderConfig config;
  config.depth = 8;
  config.feed_forward = 12;
  config.heads = 2;
  config.layers = 2;
  config.output_layer = output_layer;
  auto network = std::make_shared<PassageReader>(config, PairForm{tokens, /*closing=*/1});
  network->to(torch::kDouble);
  network->eval();
  return network;
}

// Questions of two tokens; passages of three and two, with one special token after them.
EncodedPair first() { return {{4, 5, 16, 17, 18, 15}, {3, 4}, {}, /*no_eos=*/true}; }
EncodedPair second() { return {{6, 7, 19, 20, 15}, {0, 0}, {}, /*no_eos=*/true}; }

// In plain loops: log softmax over the passage and the first token.
std::vector<double> logs_of(PassageReader& network, const EncodedPair& pair, int64_t end) {
  const Batch batch = make_batch({pair}, {0});
  const Tensor scores = network.logits(batch.source, batch.source_lengths, {})[0];
  std::vector<double> logs(pair.source.size(), -INFINITY);
  double sum = 0;
  const auto is_possible = [&](size_t i) {
    return i == 0 || (pair.source[i] >= tokens && i + 1 < pair.source.size());
  };
  for (size_t i = 0; i < logs.size(); ++i)
    if (is_possible(i)) sum += std::exp(scores[static_cast<int64_t>(i)][end].item<double>());
  for (size_t i = 0; i < logs.size(); ++i)
    if (is_possible(i))
      logs[i] = scores[static_cast<int64_t>(i)][end].item<double>() - std::log(sum);
  return logs;
}

TEST(PassageReader, SharesProbabilityOverThePassageAndTheFirstToken) {
  torch::NoGradGuard no_gradient;
  for (const bool output_layer : {false, true}) {
    const auto network = small(output_layer);
    const Batch batch = make_batch({first(), second()}, {0, 1});
    const Tensor all = network->log_probabilities(batch, {});
    ASSERT_EQ(all.sizes(), (std::vector<int64_t>{2, 2, 6}));
    double loss = 0;
    int64_t row = 0;
    for (const EncodedPair& pair : {first(), second()}) {
      for (const int64_t end : {0, 1}) {
        const std::vector<double> logs = logs_of(*network, pair, end);
        for (size_t i = 0; i < logs.size(); ++i) {
          const auto found = all[row][end][static_cast<int64_t>(i)].item<double>();
          if (std::isinf(logs[i]))
            EXPECT_EQ(found, logs[i]);
          else
            EXPECT_NEAR(found, logs[i], 1e-12);
        }
        loss -= logs[static_cast<size_t>(pair.target[static_cast<size_t>(end)])];
      }
      ++row;
    }
    EXPECT_NEAR(network->objective(batch, {}, 0).item<double>(), loss, 1e-5);
    const Tensor step = network->start(batch.source, batch.source_lengths, {})
                            ->step(at::zeros({2}, at::kLong), false, {})
                            .log_probabilities;
    EXPECT_TRUE(step.view({2, 2, 6}).equal(all));
  }
}

// Spreads a part of the probability over the possible tokens.
TEST(PassageReader, IsSmoothedOverPossibleTokens) {
  torch::NoGradGuard no_gradient;
  const auto network = small();
  const Batch batch = make_batch({first()}, {0});
  double loss = 0, mean = 0;
  for (const int64_t end : {0, 1}) {
    const std::vector<double> logs = logs_of(*network, first(), end);
    loss -= logs[static_cast<size_t>(first().target[static_cast<size_t>(end)])];
    mean -= (logs[0] + logs[2] + logs[3] + logs[4]) / 4;
  }
  EXPECT_NEAR(network->objective(batch, {}, 0.1).item<double>(), 0.9 * loss + 0.1 * mean, 1e-5);
}

TEST(PassageReader, ReadsOnlyPairs) {
  EXPECT_THAT(error_of([] { PassageReader(PassageReaderConfig(), SourceShape(tokens)); }),
              HasSubstr("set data.pairs = always"));
}

// A model of words that reads ten tokens at once.
PairModel model_of(const std::vector<Example>& examples, int64_t overlap = 2,
                   const std::string& units = "space") {
  ModelConfig config;
  config.type = "reader";
  for (const char* one :
       {"model.depth=8", "model.heads=2", "model.feed_forward=8", "model.maximum_source_length=10"})
    assign(config.settings(), one);
  assign(config.settings(), fmt::format("model.overlap={}", overlap));
  TextConfig text = config.row().text;
  text.source_units = units;
  return make_pair_model(text, config, examples);
}

std::vector<std::string> words_of(const PairModel& model, const EncodedPair& pair) {
  std::vector<std::string> words;
  for (const int64_t id : pair.source)
    words.push_back(model.source_vocabulary.token(model.vocabulary_id(id)));
  return words;
}

TEST(SpanAnswers, ArePositionsInTheSource) {
  const std::vector<Example> examples = {{"q ?\ta b a c", {"a c", "a", "a\t4", ""}}};
  const PairModel model = model_of(examples);
  std::vector<std::vector<int64_t>> targets;
  for (const EncodedPair& pair : model.encode(examples)) {
    EXPECT_THAT(words_of(model, pair), ElementsAre("q", "?", "\t", "a", "b", "a", "c"));
    targets.push_back(pair.target);
  }
  EXPECT_THAT(targets, ElementsAre(ElementsAre(5, 6), ElementsAre(3, 3), ElementsAre(5, 5),
                                   ElementsAre(0, 0)));
}

// Parts of seven words that share two.
TEST(SpanAnswers, AreReadInPartsOfALongPassage) {
  const std::string passage = "0 1 2 3 4 5 6 7 8 9 10 11 12";
  const std::vector<Example> examples = {
      {"q ?\t" + passage, {"1", "6", "11 12", "0 1 2 3 4 5 6 7"}}};
  const PairModel model = model_of(examples);
  const EncodedPair whole{model.source_ids(model.codecs.source.split_source(examples[0].source)),
                          {}};
  std::vector<std::vector<std::string>> parts;
  for (const EncodedPair& part : model.answer_kind().parts(model, whole))
    parts.push_back(words_of(model, part));
  EXPECT_THAT(parts, ElementsAre(ElementsAre("q", "?", "\t", "0", "1", "2", "3", "4", "5", "6"),
                                 ElementsAre("q", "?", "\t", "5", "6", "7", "8", "9", "10", "11"),
                                 ElementsAre("q", "?", "\t", "10", "11", "12")));
  const std::vector<EncodedPair> pairs = model.encode(examples);
  const auto answer = [&](size_t i) {
    const auto words = words_of(model, pairs[i]);
    return words[static_cast<size_t>(pairs[i].target[0])] + "-" +
           words[static_cast<size_t>(pairs[i].target[1])];
  };
  EXPECT_EQ(answer(0), "1-1");
  EXPECT_EQ(answer(1), "6-6");
  EXPECT_THAT(words_of(model, pairs[1]), parts[1]);  // with a word before it
  EXPECT_EQ(answer(2), "11-12");
  EXPECT_THAT(pairs[3].target, ElementsAre(0, 0));  // longer than a part
}

TEST(SpanAnswers, CutALongQuestionToHalfOfTheSource) {
  const std::vector<Example> examples = {{"a b c d e f g h i j k\t1 2 3 4 5 6", {"6"}}};
  const PairModel model = model_of(examples);
  const EncodedPair pair = model.encode(examples).at(0);
  EXPECT_THAT(words_of(model, pair), ElementsAre("a", "b", "c", "d", "\t", "4", "5", "6"));
  EXPECT_THAT(pair.target, ElementsAre(7, 7));
}

// Log probabilities of first, then of last tokens.
std::vector<StepAnswer> answers_of(const PairModel& model, const std::string& source,
                                   const std::vector<std::vector<double>>& steps,
                                   const SearchOptions& options) {
  AskedSource asked{.text = source, .steps = {}, .options = options};
  for (const auto& step : steps) asked.steps.emplace_back(step);
  return model.answer_kind().read_steps(model, asked);
}

TEST(SpanAnswers, RankByTheProbabilityOfBothEnds) {
  const std::string source = "q ?\tä b";
  const PairModel model = model_of({{source, {"b"}}});
  const auto log = [](std::vector<double> shares) {
    for (double& share : shares) share = std::log(share);
    return shares;
  };
  const std::vector<double> step = log({0.3, 0, 0, 0.1, 0.6, 0.5, 0, 0, 0.4, 0.1});
  SearchOptions options;
  options.beam = options.nbest = 5;
  std::vector<std::string> found;
  for (const StepAnswer& answer : answers_of(model, source, {step}, options))
    found.push_back(
        fmt::format("{} {}-{} {:.3f}", *answer.text, answer.span->begin, answer.span->end,
                    std::exp(answer.log_probabilities[0] + answer.log_probabilities[1])));
  EXPECT_THAT(found, ElementsAre("b 2-3 0.060", "ä 0-1 0.040", "ä b 0-3 0.010"));
  options.no_answer = true;
  options.maximum_length = 1;
  found.clear();
  for (const StepAnswer& answer : answers_of(model, source, {step}, options))
    found.push_back(*answer.text);
  EXPECT_THAT(found, ElementsAre("", "b", "ä"));
  const std::vector<double> bad(10, NAN);
  EXPECT_THAT(answers_of(model, source, {bad}, options), IsEmpty());
}

// Each character is a token.
TEST(SpanAnswers, DoNotBeginOrEndWithSpaces) {
  const std::string source = "q\tä b";
  const PairModel model = model_of({{source, {"b"}}}, 2, "char");
  SearchOptions options;
  options.beam = options.nbest = 9;
  std::vector<std::string> found;
  for (const StepAnswer& answer :
       answers_of(model, source, {std::vector<double>(10, std::log(0.2))}, options))
    found.push_back(*answer.text);
  EXPECT_THAT(found, UnorderedElementsAre("ä", "b", "ä b"));
}

TEST(SpanAnswers, NeedTokensThatArePartsOfTheText) {
  ModelConfig config;
  config.type = "reader";
  TextConfig text = config.row().text;
  const auto error = [&](auto change) {
    TextConfig changed = text;
    change(changed);
    return error_of([&] {
      make_pair_model(changed, config, std::vector<Example>{{"q\ta", {"a"}}});
    });
  };
  EXPECT_EQ(error([](TextConfig&) {}), "");
  for (const std::string& wrong : {error([](TextConfig& it) { it.lowercase = true; }),
                                   error([](TextConfig& it) { it.normalise = NormalForm::nfc; }),
                                   error([](TextConfig& it) { it.source_units = "byte"; })})
    EXPECT_THAT(wrong, HasSubstr("tokens must be parts of the text as it is"));
  EXPECT_THAT(error([](TextConfig& it) { it.pairs = PairTexts::optional; }),
              HasSubstr("set data.pairs = always"));
}

}  // namespace passage_reader_test
}  // namespace attend
