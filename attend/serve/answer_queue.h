#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "attend/inference/model.h"

namespace attend {

// What one request asks a model. Its functions are called on the threads that compute, those that
// are told something by one at a time.
struct Question {
  std::vector<std::string> sources;
  std::vector<std::string> prefixes;  // none, or one for each source
  SearchOptions search;
  // Questions of equal text have equal options and are answered together; others, and those
  // without a text, are not.
  std::string options;
  // One thread answers all sources of a long question, so that it never keeps a model of several
  // threads from other questions.
  bool is_long = false;
  std::function<bool()> is_abandoned;  // whether nobody waits for the answers any more
  // Told what there is of an answer, as AnswerWatch::grows is; may be empty.
  std::function<void(size_t source, size_t answer, const Candidate& so_far)> grows = {};
  std::function<void(const std::vector<Answer>&)> answered;  // one for each source
  // Set in place of `answered`: what is asked for are vectors.
  std::function<void(const std::vector<Embedding>&)> embedded = {};
  std::function<void(const std::exception&)> failed;  // what the call threw
};

// Of sources that are handed out at once, unless a single one has more.
constexpr size_t most_tokens_together = 4096;

// Questions that wait for a model, and the threads that ask it. Each thread takes its share of the
// sources that wait and have the same options, and further ones as soon as the model takes them
// beside those that it is answering, which costs less than one after another. A thread that finds
// the model idle asks at once; otherwise it waits for some milliseconds, as long as more questions
// come. Questions with other options wait until a thread has none, which is soon: sources of so
// much weight overtake them and no more, where a long source weighs as much as several short ones,
// and a question of more than that goes behind the others each time that so much of it was taken.
// Only one thread at a time takes sources of a long question.
// What is abandoned is no longer computed, from the next token or the next sources on. The answers
// to a question do not depend on those beside it; the model must skip what it cannot read
// (ModelOptions::skip_bad), so that errors do not either.
class AnswerQueue {
 public:
  // Answers as Model::answer_arriving does, on any thread.
  using Ask = std::function<void(const SearchOptions& search, const Model::Arrivals& arrivals)>;
  // Does what Model::embed does, on any thread.
  using Embed = std::function<std::vector<Embedding>(const std::vector<std::string>& sources)>;
  // Told when a thread takes questions: how long each had waited, and how many sources the thread
  // has then.
  using Watch = std::function<void(const std::vector<double>& queued_seconds, size_t together)>;

  // `longest`: tokens of a source that the model reads. Error where the system starts no more
  // threads.
  AnswerQueue(Ask ask, size_t most, Watch watch, size_t threads, Embed embed = {},
              size_t longest = std::numeric_limits<size_t>::max());
  // Ends when what the threads are at is answered. What waits is dropped.
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  // False where `most` questions that somebody waits for are in it.
  bool add(Question question);
  // Whether add() would say no. Looks for questions that nobody waits for once a millisecond: an
  // overload asks more often than clients leave.
  bool is_full();
  size_t size() const;   // questions that wait, of which some sources may have been taken
  bool is_idle() const;  // nothing waits and nothing is being answered

 private:
  class Asked;
  class Call;
  struct Waiting {
    std::shared_ptr<Asked> asked;
    std::chrono::steady_clock::time_point since;
    size_t taken = 0;             // sources
    size_t weight = 0;            // of those that were taken since it was behind all others
    const Call* owner = nullptr;  // of a long question: the call that answers it

    size_t left() const;
  };

  void work();
  void stop();
  void drop_abandoned();
  void gather(std::unique_lock<std::mutex>& lock);
  // The first question that no other thread owns; null: none.
  std::shared_ptr<Asked> first_free() const;
  size_t share() const;
  size_t weight(const std::string& source) const;
  void end(size_t sources);

  Ask ask_;
  Embed embed_;
  size_t most_;
  Watch watch_;
  size_t longest_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;
  std::chrono::steady_clock::time_point looked_ = {};  // by is_full(), for those to drop
  size_t answering_ = 0;                               // sources of the calls that are under way
  bool is_ended_ = false;
  const size_t thread_count_;
  std::vector<std::thread> threads_;
};

}  // namespace attend
