#include "attend/serve/answer_queue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace attend::answer_queue_test {

using Texts = std::vector<std::string>;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

Candidate so_far(const std::string& text) {
  Candidate candidate;
  candidate.text = text;
  return candidate;
}

// Answers each source with itself, after each batch. A gate holds the batches, so that tests
// control the order.
class Model {
 public:
  AnswerQueue::Ask ask() {
    return [this](const attend::Model::Arrivals& arrivals) {
      for (auto requests = arrivals(0); !requests.empty(); requests = arrivals(0)) {
        pass(texts_of(requests));
        for (const Request& request : requests) answer(request);
      }
    };
  }
  // Answers only after no more sources join.
  AnswerQueue::Ask ask_joining() {
    return [this](const attend::Model::Arrivals& arrivals) {
      std::vector<Request> all;
      for (auto more = arrivals(0); !more.empty(); more = arrivals(all.size())) {
        pass(texts_of(more));
        all.insert(all.end(), more.begin(), more.end());
      }
      for (const Request& request : all) answer(request);
    };
  }
  // Makes vectors with the source as their token.
  AnswerQueue::Embed embed() {
    return [this](const Texts& sources, const std::string& /*prompt*/) {
      pass(sources);
      std::vector<Embedding> embeddings(sources.size());
      for (size_t i = 0; i < sources.size(); ++i) {
        if (sources[i] == "throws") throw std::runtime_error("broken");
        embeddings[i].tokens = {sources[i]};
      }
      return embeddings;
    };
  }
  // Opens the gate for the first `calls` batches.
  void open(size_t calls = 1000) {
    const std::lock_guard lock(mutex_);
    opened_ = calls;
    changed_.notify_all();
  }
  // Waits for `count` batches and returns all batches so far.
  std::vector<Texts> calls(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_.size() >= count; });
    return calls_;
  }

  std::atomic<int> stopped = 0;

 private:
  static Texts texts_of(const std::vector<Request>& requests) {
    Texts texts;
    for (const Request& request : requests) texts.push_back(request.source);
    return texts;
  }

  void pass(const Texts& sources) {
    std::unique_lock lock(mutex_);
    calls_.push_back(sources);
    changed_.notify_all();
    changed_.wait(lock, [this, number = calls_.size()] { return number <= opened_; });
  }

  void answer(const Request& request) {
    if (request.source == "throws") throw std::runtime_error("broken");
    Answer answer;
    answer.source = {request.source};
    if (request.sink->cancelled(request.number))
      ++stopped;
    else if (request.streams)
      request.sink->token(request.number, 0, so_far(request.source));
    request.sink->done(request.number, std::move(answer));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Texts> calls_;
  size_t opened_ = 0;
};

// A client and its result: the sources of its answers, or "failed: " with the message.
struct Asked {
  // Options of this maximum length; 0: sampling.
  ClientRequests question(const Texts& sources, int64_t options = 1) {
    SearchOptions search{.maximum_length = options};
    if (options == 0) search.sampling = Sampling();
    std::vector<Request> requests = requests_of(sources, search);
    for (Request& request : requests) request.streams = true;
    return {.requests = std::move(requests), .sink = std::make_shared<Told>(*this, sources.size())};
  }
  // As question(), for vectors.
  ClientRequests vectors(const Texts& sources) {
    ClientRequests client = question(sources);
    client.wants_vectors = true;
    return client;
  }
  Texts result() { return promise.get_future().get(); }

  std::promise<Texts> promise;
  std::mutex mutex;
  Texts grown;  // the number of a source with its partial answer
  std::atomic<bool> is_abandoned = false, throws = false;

 private:
  struct Told : ClientSink {
    Told(Asked& its_asked, size_t count) : asked(its_asked), texts(count), left(count) {}

    bool cancelled(size_t) override { return has_failed || asked.is_abandoned; }
    void token(size_t number, size_t, const Candidate& candidate) override {
      const std::lock_guard lock(asked.mutex);
      asked.grown.push_back(std::to_string(number) + candidate.text);
    }
    void done(size_t number, Answer answer) override { take(number, answer.source[0]); }
    void embedded(size_t number, Embedding embedding) override {
      take(number, embedding.tokens.at(0));
    }
    void failed(const std::exception& error) override {
      if (!has_failed.exchange(true))
        asked.promise.set_value({"failed: " + std::string(error.what())});
    }
    void take(size_t number, const std::string& text) {
      const std::lock_guard lock(asked.mutex);
      texts[number] = text;
      if (--left > 0 || cancelled(number)) return;
      if (asked.throws) throw std::runtime_error("no JSON");
      asked.promise.set_value(texts);
    }

    Asked& asked;
    Texts texts;
    size_t left;
    std::atomic<bool> has_failed = false;
  };
};

TEST(AnswerQueue, WhatAQuestionThrowsIsItsOwnFailure) {
  Model model;
  Asked first, broken, beside, broken_vectors, other_vectors;
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 1, model.embed());
  queue.add(first.question({"a"}));
  model.calls(1);
  broken.throws = broken_vectors.throws = true;
  queue.add(broken.question({"b"}));
  queue.add(beside.question({"c"}));
  queue.add(broken_vectors.vectors({"d"}));
  queue.add(other_vectors.vectors({"e"}));
  model.open();
  EXPECT_THAT(broken.result(), ElementsAre("failed: no JSON"));
  EXPECT_THAT(beside.result(), ElementsAre("c"));
  EXPECT_THAT(broken_vectors.result(), ElementsAre("failed: no JSON"));
  EXPECT_THAT(other_vectors.result(), ElementsAre("e"));
  EXPECT_THAT(model.calls(2)[1], ElementsAre("b", "c"));
}

TEST(AnswerQueue, AsksAllThatWaitWithEqualOptionsAtOnce) {
  Model model;
  std::vector<std::pair<size_t, size_t>> batches;
  Asked first, second, other, drawn, drawn_too, third;
  AnswerQueue queue(
      model.ask(), 256,
      [&](const auto& seconds, size_t together) { batches.emplace_back(seconds.size(), together); },
      1);
  queue.add(first.question({"a"}));
  model.calls(1);
  queue.add(second.question({"b", "c"}));
  queue.add(other.question({"d"}, 2));
  queue.add(drawn.question({"e"}, 0));
  queue.add(drawn_too.question({"f"}, 0));
  queue.add(third.question({"g"}));
  EXPECT_EQ(queue.size(), 5);
  EXPECT_FALSE(queue.is_idle());
  model.open();
  EXPECT_THAT(drawn_too.result(), ElementsAre("f"));
  EXPECT_THAT(third.result(), ElementsAre("g"));
  EXPECT_THAT(second.result(), ElementsAre("b", "c"));
  EXPECT_THAT(model.calls(5),
              ElementsAre(Texts{"a"}, Texts{"b", "c", "g"}, Texts{"d"}, Texts{"e"}, Texts{"f"}));
  EXPECT_THAT(batches, ElementsAre(Pair(1, 1), Pair(2, 3), Pair(1, 1), Pair(1, 1), Pair(1, 1)));
}

TEST(AnswerQueue, AThreadTakesItsShareOfAllSources) {
  Model model;
  std::vector<Asked> asked(6);
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 2);
  for (size_t i = 0; i < 2; ++i) {
    queue.add(asked[i].question({std::to_string(i)}));
    model.calls(i + 1);
  }
  for (size_t i = 2; i < asked.size(); ++i) queue.add(asked[i].question({std::to_string(i)}));
  // One source is still being answered and four wait, for two threads.
  model.open(1);
  EXPECT_THAT(model.calls(3)[2], ElementsAre("2", "3", "4"));
  model.open();
  EXPECT_THAT(asked[5].result(), ElementsAre("5"));
}

TEST(AnswerQueue, QuestionsJoinThoseOfEqualOptions) {
  Model model;
  std::vector<size_t> together;
  Asked first, second, other, third;
  AnswerQueue queue(
      model.ask_joining(), 256, [&](const auto&, size_t all) { together.push_back(all); }, 1);
  queue.add(first.question({"a"}));
  model.calls(1);
  queue.add(other.question({"x"}, 2));
  queue.add(second.question({"b", "c"}));
  model.open(1);
  model.calls(2);
  queue.add(third.question({"d"}));
  model.open();
  EXPECT_THAT(other.result(), ElementsAre("x"));
  EXPECT_THAT(first.result(), ElementsAre("a"));
  EXPECT_THAT(second.result(), ElementsAre("b", "c"));
  EXPECT_THAT(third.result(), ElementsAre("d"));
  EXPECT_THAT(model.calls(4), ElementsAre(Texts{"a"}, Texts{"b", "c"}, Texts{"d"}, Texts{"x"}));
  EXPECT_THAT(together, ElementsAre(1, 3, 4, 1));
}

TEST(AnswerQueue, SourcesOfAQuestionAreSharedOut) {
  Model model;
  Asked asked;
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 2);
  queue.add(asked.question({"a", "b", "c", "d", "e"}));
  EXPECT_THAT(model.calls(2), UnorderedElementsAre(Texts{"a", "b", "c"}, Texts{"d", "e"}));
  EXPECT_EQ(queue.size(), 0);
  EXPECT_FALSE(queue.is_idle());
  model.open();
  EXPECT_THAT(asked.result(), ElementsAre("a", "b", "c", "d", "e"));
}

TEST(AnswerQueue, ALongQuestionLeavesTheOtherThreadsToOthers) {
  Model model;
  Asked asked, other;
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 2);
  ClientRequests question = asked.question(Texts(100, "a"), 0);
  question.is_long = true;
  queue.add(std::move(question));
  // 64 are taken at once, and the rest waits for the same thread.
  EXPECT_EQ(model.calls(1)[0].size(), 64U);
  queue.add(other.question({"x"}, 2));
  EXPECT_THAT(model.calls(2)[1], ElementsAre("x"));
  model.open();
  EXPECT_THAT(other.result(), ElementsAre("x"));
  EXPECT_EQ(asked.result().size(), 100U);
  EXPECT_EQ(model.calls(3)[2].size(), 36U);
}

TEST(AnswerQueue, ALongQuestionThatIsOvertakenIsTakenUpAgain) {
  Model model;
  std::vector<Asked> asked(4);
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 2);
  for (size_t i = 0; i < asked.size(); ++i) {
    ClientRequests question = asked[i].question(Texts(600, std::to_string(i)), 0);
    question.is_long = true;
    queue.add(std::move(question));
  }
  model.open();
  for (Asked& one : asked) EXPECT_EQ(one.result().size(), 600U);
}

TEST(AnswerQueue, QuestionsOfOtherOptionsAreNotOvertakenForEver) {
  Model model;
  std::vector<Asked> asked(20);
  Asked other;
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 1);
  queue.add(asked[0].question({"a"}));
  model.calls(1);
  queue.add(other.question({"x"}, 2));
  // 64 are taken at once.
  for (size_t i = 1; i < asked.size(); ++i) queue.add(asked[i].question(Texts(32, "b")));
  model.open();
  EXPECT_THAT(other.result(), ElementsAre("x"));
  const std::vector<Texts> calls = model.calls(6);
  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(calls[i].size(), 64U);
  EXPECT_THAT(calls[5], ElementsAre("x"));
  for (size_t i = 1; i < asked.size(); ++i) EXPECT_EQ(asked[i].result().size(), 32U);
}

TEST(AnswerQueue, IsFullOnlyOfQuestionsThatSomebodyWaitsFor) {
  Model model;
  Asked running, left, waits, late, next;
  AnswerQueue queue(
      model.ask(), 2, [](const auto&, size_t) {}, 1);
  EXPECT_TRUE(queue.add(running.question({"a"})));
  model.calls(1);
  EXPECT_TRUE(queue.add(left.question({"b"})));
  EXPECT_TRUE(queue.add(waits.question({"c"})));
  EXPECT_FALSE(queue.add(late.question({"d"})));
  left.is_abandoned = true;
  EXPECT_TRUE(queue.add(next.question({"e"})));
  model.open();
  EXPECT_THAT(next.result(), ElementsAre("e"));
  EXPECT_THAT(model.calls(2), ElementsAre(Texts{"a"}, Texts{"c", "e"}));
}

TEST(AnswerQueue, IsFullUntilSomebodyLeaves) {
  Model model;
  Asked running, left, waits;
  AnswerQueue queue(
      model.ask(), 2, [](const auto&, size_t) {}, 1);
  queue.add(running.question({"a"}));
  model.calls(1);
  queue.add(left.question({"b"}));
  EXPECT_FALSE(queue.is_full());
  queue.add(waits.question({"c"}));
  EXPECT_TRUE(queue.is_full());
  left.is_abandoned = true;
  while (queue.is_full()) std::this_thread::yield();  // the queue polls for abandoned requests
  EXPECT_EQ(queue.size(), 1);
  model.open();
}

TEST(AnswerQueue, StopsWhatAClientAskedThatLeaves) {
  Model model;
  Asked first, stays, left;
  std::optional<AnswerQueue> queue(
      std::in_place, model.ask(), 256, [](const auto&, size_t) {}, 1);
  queue->add(first.question({"a"}));
  model.calls(1);
  queue->add(stays.question({"b", "c"}));
  queue->add(left.question({"x", "y", "z"}));
  model.open(1);
  model.calls(2);
  left.is_abandoned = true;
  model.open();
  EXPECT_THAT(stays.result(), ElementsAre("b", "c"));
  EXPECT_THAT(stays.grown, ElementsAre("0b", "1c"));
  queue.reset();  // waits for the call
  EXPECT_EQ(model.stopped, 3);
  EXPECT_THAT(left.grown, ElementsAre());
  EXPECT_EQ(left.promise.get_future().wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
}

TEST(AnswerQueue, WhoLeavesTakesNoAnswerOfAnother) {
  Model model;
  Asked first, left, stays;
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 1);
  queue.add(first.question({"a"}));
  model.calls(1);
  queue.add(left.question({"b"}));
  queue.add(stays.question({"c"}));
  left.is_abandoned = true;
  model.open();
  EXPECT_THAT(stays.result(), ElementsAre("c"));
}

TEST(AnswerQueue, AFailureReachesWhoIsNotAnswered) {
  Model model;
  Asked first, answered, broken, behind;
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 1);
  queue.add(first.question({"a"}));
  model.calls(1);
  queue.add(answered.question({"b"}));
  queue.add(broken.question({"throws"}));
  queue.add(behind.question({"c"}));
  model.open();
  EXPECT_THAT(answered.result(), ElementsAre("b"));
  EXPECT_THAT(broken.result(), ElementsAre("failed: broken"));
  EXPECT_THAT(behind.result(), ElementsAre("failed: broken"));
}

TEST(AnswerQueue, OptionsThatTheModelRefusesFailTheirQuestions) {
  Model model;
  model.open();
  Asked refused, refused_too, answered;
  const auto ask = [&](const attend::Model::Arrivals& arrivals) {
    model.ask()([&](size_t answering) {
      std::vector<Request> requests = arrivals(answering);
      for (const Request& request : requests)
        if (request.options.beam == 2) throw std::runtime_error("no such beam");
      return requests;
    });
  };
  AnswerQueue queue(
      ask, 256, [](const auto&, size_t) {}, 1);
  for (Asked* asked : {&refused, &refused_too}) {
    ClientRequests question = asked->question({"a"});
    question.requests[0].options.beam = 2;
    queue.add(std::move(question));
  }
  queue.add(answered.question({"b"}));
  EXPECT_THAT(refused.result(), ElementsAre("failed: no such beam"));
  EXPECT_THAT(refused_too.result(), ElementsAre("failed: no such beam"));
  EXPECT_THAT(answered.result(), ElementsAre("b"));
}

TEST(AnswerQueue, VectorsAreAskedForAtOnce) {
  Model model;
  Asked answered, first, left, second, broken;
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 1, model.embed());
  queue.add(answered.question({"a"}));
  model.calls(1);
  queue.add(first.vectors({"b", "c"}));
  queue.add(left.vectors({"d"}));
  queue.add(second.vectors({"e"}));
  left.is_abandoned = true;
  model.open();
  EXPECT_THAT(second.result(), ElementsAre("e"));
  EXPECT_THAT(first.result(), ElementsAre("b", "c"));
  queue.add(broken.vectors({"throws"}));
  EXPECT_THAT(broken.result(), ElementsAre("failed: broken"));
  EXPECT_THAT(model.calls(3), ElementsAre(Texts{"a"}, Texts{"b", "c", "e"}, Texts{"throws"}));
}

TEST(AnswerQueue, VectorsOfManyTextsEndBetweenTheseWhenTheirClientLeaves) {
  Model model;
  Asked left, stays;
  std::optional<AnswerQueue> queue(
      std::in_place, model.ask(), 256, [](const auto&, size_t) {}, 1, model.embed());
  queue->add(left.vectors(Texts(2000, "x")));
  EXPECT_EQ(model.calls(1)[0].size(), 256U);
  queue->add(stays.vectors({"a"}));
  left.is_abandoned = true;
  model.open();
  EXPECT_THAT(stays.result(), ElementsAre("a"));
  queue.reset();  // waits for the call
  EXPECT_THAT(model.calls(2)[1], ElementsAre("a"));
  EXPECT_EQ(model.calls(2).size(), 2U);
  EXPECT_EQ(left.promise.get_future().wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
}

TEST(AnswerQueue, AQuestionOfMuchWorkGoesBehindTheOthersEachTimeThatSomeIsDone) {
  Model model;
  Asked large, vectors, beside, other;
  // The model reads 400 tokens of a source of 4,000 bytes, with the weight of 25 short sources.
  const std::string long_source(4000, 'x');
  AnswerQueue queue(
      model.ask(), 256, [](const auto&, size_t) {}, 1, model.embed(), 400);
  queue.add(large.question(Texts(30, long_source)));
  EXPECT_EQ(model.calls(1)[0].size(), 11U);
  queue.add(vectors.vectors(Texts(20, long_source)));
  queue.add(other.question({"a"}, 2));
  queue.add(beside.question({"b"}));
  model.open();
  EXPECT_EQ(large.result().size(), 30U);
  EXPECT_EQ(vectors.result().size(), 20U);
  EXPECT_THAT(other.result(), ElementsAre("a"));
  EXPECT_THAT(beside.result(), ElementsAre("b"));
  std::vector<std::pair<size_t, size_t>> calls;  // numbers of long sources and of others
  for (const Texts& call : model.calls(6)) {
    const auto count = static_cast<size_t>(std::count(call.begin(), call.end(), long_source));
    calls.emplace_back(count, call.size() - count);
  }
  EXPECT_THAT(calls, ElementsAre(Pair(11, 0), Pair(11, 0), Pair(11, 0), Pair(0, 1), Pair(8, 1),
                                 Pair(9, 0)));
}

}  // namespace attend::answer_queue_test
