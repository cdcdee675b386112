// Tests of sources that join a running batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attend/inference/model.h"
#include "tests/inference/untrained_model.h"
#include "tests/support/files.h"
#include "tests/support/test_sink.h"

namespace attend {
namespace arriving_test {

const std::vector<std::string> texts = {"cab", "a", "bad", "", "abba", "dab", "zab", "dad"};

Model some_model(const std::string& type, const ModelOptions& options = {.threads = 2}) {
  return Model(test::untrained_model(type), options);
}

void expect_same(const Answer& found, const Answer& wanted) {
  EXPECT_EQ(found.source, wanted.source);
  EXPECT_EQ(found.unknown, wanted.unknown);
  ASSERT_EQ(found.candidates.size(), wanted.candidates.size());
  for (size_t i = 0; i < wanted.candidates.size(); ++i) {
    EXPECT_EQ(found.candidates[i].text, wanted.candidates[i].text);
    EXPECT_EQ(found.candidates[i].log_probabilities, wanted.candidates[i].log_probabilities);
    EXPECT_EQ(found.candidates[i].score, wanted.candidates[i].score);
    EXPECT_EQ(found.candidates[i].complete, wanted.candidates[i].complete);
    EXPECT_EQ(found.candidates[i].weights, wanted.candidates[i].weights);
  }
}

// Provides some requests on each call of the model, and keeps their answers.
class Arrivals : public test::TestSink {
 public:
  Arrivals(const SearchOptions& search, size_t at_once,
           const std::vector<std::string>& prefixes = {})
      : requests(requests_of(texts, search, this, prefixes)),
        answers_(texts.size()),
        at_once_(at_once) {
    take = [this](size_t number, Answer answer) {
      EXPECT_FALSE(answers_[number].has_value());
      answers_[number] = std::move(answer);
    };
  }
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  Model::Arrivals arrivals() {
    return [this](size_t answering) {
      size_t untold = given_;
      for (const auto& answer : answers_) untold -= answer.has_value() ? 1 : 0;
      EXPECT_EQ(answering, untold);
      std::vector<Request> more;
      for (; more.size() < at_once_ && given_ < requests.size(); ++given_)
        more.push_back(requests[given_]);
      joined_ += answering > 0 ? more.size() : 0;
      return more;
    };
  }

  const std::vector<std::optional<Answer>>& answers() const { return answers_; }
  size_t joined() const { return joined_; }

  std::vector<Request> requests;

 private:
  std::vector<std::optional<Answer>> answers_;
  size_t at_once_, given_ = 0, joined_ = 0;
};

void expect_as_alone(const Model& model, const SearchOptions& search,
                     const std::vector<std::string>& prefixes, bool joins) {
  const auto wanted = model.answer(texts, search, prefixes);
  for (const size_t at_once : {1U, 2U, 8U}) {
    Arrivals arriving(search, at_once, prefixes);
    model.answer_arriving(arriving.arrivals());
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(arriving.answers()[i].has_value()) << i;
      expect_same(*arriving.answers()[i], wanted[i]);
    }
    EXPECT_EQ(arriving.joined() > 0, joins && at_once < 8);
  }
}

const SearchOptions greedy{.minimum_length = 3, .maximum_length = 6};

TEST(Arriving, GetWhatTheyHaveAlone) {
  for (const std::string type :
       {"seq2seq", "transformer", "classifier", "tagger", "lm", "encoder"}) {
    SCOPED_TRACE(type);
    const Model model = some_model(type);
    expect_as_alone(model, greedy, {}, type == "transformer");
    SearchOptions drawn = greedy;
    drawn.nbest = 2;
    drawn.sampling = Sampling{.seed = 4};
    expect_as_alone(model, drawn, {}, type == "transformer");
  }
}

TEST(Arriving, GetBeamsAndBeginningsOfTheirOwn) {
  const Model model = some_model("transformer");
  expect_as_alone(model, {.beam = 3, .nbest = 3, .maximum_length = 6}, {}, true);
  expect_as_alone(model, greedy, {"K", "", "B", "", "B", "", "B", "K"}, true);
  expect_as_alone(some_model("transformer", {.weights = WeightType::bfloat16, .threads = 1}),
                  {.beam = 2, .maximum_length = 6}, {}, true);
}

TEST(Arriving, WeightsAreToldByThoseWhoComeTogether) {
  SearchOptions weighed = greedy;
  weighed.with_weights = true;
  expect_as_alone(some_model("transformer"), weighed, {}, false);
}

TEST(Arriving, WhoLeavesChangesNoAnswer) {
  const Model model = some_model("transformer");
  const auto wanted = model.answer(texts, greedy);
  for (const int steps : {0, 1, 2}) {
    std::vector<int> asked(texts.size());
    Arrivals arriving(greedy, 1);
    arriving.is_cancelled = [&](size_t i) { return i % 2 == 0 && asked[i]++ >= steps; };
    model.answer_arriving(arriving.arrivals());
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(arriving.answers()[i].has_value()) << i;
      if (i % 2 == 1) expect_same(*arriving.answers()[i], wanted[i]);
      for (const Candidate& candidate : arriving.answers()[i]->candidates)
        EXPECT_LE(std::ssize(candidate.tokens), i % 2 == 1 ? 6 : steps);
    }
  }
}

TEST(Arriving, GrowIntoWhatTheyAre) {
  const Model model = some_model("transformer");
  std::vector<std::string> grown(texts.size());
  Arrivals arriving(greedy, 1);
  for (size_t i = 0; i < texts.size(); i += 2) arriving.requests[i].streams = true;
  arriving.grows = [&](size_t i, size_t, const Candidate& so_far) { grown[i] = so_far.text; };
  model.answer_arriving(arriving.arrivals());
  for (size_t i = 0; i < texts.size(); ++i)
    if (const Answer& answer = *arriving.answers()[i]; !answer.candidates.empty()) {
      EXPECT_EQ(grown[i], i % 2 == 0 ? answer.best().text : "");
    }
}

TEST(Arriving, AnErrorIsItsOwn) {
  const Model model = some_model("transformer", {.threads = 1, .skip_bad = true});
  Arrivals arriving(greedy, 1);
  arriving.requests[2].prefix = "x";
  arriving.requests[4].source = "\xff";
  model.answer_arriving(arriving.arrivals());
  EXPECT_THAT(arriving.answers()[2]->error, testing::HasSubstr("cannot begin with"));
  EXPECT_THAT(arriving.answers()[4]->error, testing::HasSubstr("UTF-8"));
  expect_same(*arriving.answers()[5], model.answer({texts[5]}, greedy)[0]);
}

// Sources keep arriving until another call has had its turn on the only thread.
TEST(Arriving, GiveWayToOtherCalls) {
  const Model model = some_model("transformer", {.threads = 1});
  std::atomic<bool> is_answered = false;
  std::thread other;
  test::TestSink sink;
  const auto arrivals = [&](size_t) -> std::vector<Request> {
    if (is_answered) return {};
    if (!other.joinable())
      other = std::thread([&] {
        model.answer({"bad"}, greedy);
        is_answered = true;
      });
    return {{.source = "cab", .options = greedy, .sink = &sink}};
  };
  while (!is_answered) model.answer_arriving(arrivals);
  other.join();
}

// Without ModelOptions::skip_bad an error ends the call, like an exception of a function.
TEST(Arriving, AnErrorEndsTheCall) {
  const Model model = some_model("transformer");
  Arrivals arriving(greedy, 2), without_beam({.beam = 0}, 2), different(greedy, 2);
  arriving.requests[1].prefix = "x";
  EXPECT_THROW(model.answer_arriving(arriving.arrivals()), SourceError);
  EXPECT_THAT(test::error_of([&] { model.answer_arriving(without_beam.arrivals()); }),
              testing::HasSubstr("beam"));
  different.requests[1].options.minimum_length = 2;
  EXPECT_THAT(test::error_of([&] { model.answer_arriving(different.arrivals()); }),
              testing::HasSubstr("different options"));
  EXPECT_THAT(test::error_of([&] { model.answer_each(different.requests); }),
              testing::HasSubstr("different options"));
}

}  // namespace arriving_test
}  // namespace attend
