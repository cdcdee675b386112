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

// One request to a model. Its functions are called on the threads that compute; calls of `grows`,
// `answered`, `embedded` and `failed` are serialised.
struct Question {
  std::vector<std::string> sources;
  std::vector<std::string> prefixes;  // empty, or one per source
  SearchOptions search;
  // Questions with equal, non-empty text have equal options and are answered together.
  std::string options;
  // A single thread answers all sources of a long question, which leaves the model's other threads
  // to other questions.
  bool is_long = false;
  std::function<bool()> is_abandoned;  // true: the client no longer waits
  // Called with each partial answer, as AnswerWatch::grows; optional.
  std::function<void(size_t source, size_t answer, const Candidate& so_far)> grows = {};
  std::function<void(const std::vector<Answer>&)> answered;  // one answer per source
  // Set instead of `answered` if the request is for vectors.
  std::function<void(const std::vector<Embedding>&)> embedded = {};
  std::function<void(const std::exception&)> failed;  // exception of the call
};

// Maximum number of tokens handed out at once, unless a single source has more.
constexpr size_t max_tokens_together = 4096;

// Queue of the questions to a model, and the threads that run it. A thread takes its share of the
// waiting sources with equal options. It takes further ones as soon as the model accepts them next
// to the sources in progress, which costs less than one after another.
// If the model is idle, a thread starts at once. Otherwise it waits up to some milliseconds while
// questions keep coming.
// Questions with equal options may overtake others until a fixed weight is taken; then the oldest
// question runs. Long sources weigh more. A question over that weight is requeued after each slice.
// Only one thread at a time takes sources of a long question.
// Abandoned questions stop before the next token or the next sources. Answers do not depend on the
// other questions. For errors this requires a model that skips bad sources
// (ModelOptions::skip_bad).
class AnswerQueue {
 public:
  // Does the work of Model::answer_arriving, on any thread.
  using Ask = std::function<void(const SearchOptions& search, const Model::Arrivals& arrivals)>;
  // Does the work of Model::embed, on any thread.
  using Embed = std::function<std::vector<Embedding>(const std::vector<std::string>& sources)>;
  // Called when a thread takes questions, with their queue times and the number of sources that the
  // thread then answers.
  using Watch = std::function<void(const std::vector<double>& queued_seconds, size_t together)>;

  // `longest`: maximum number of tokens that the model reads of a source. Error if the system
  // cannot start the threads.
  AnswerQueue(Ask ask, size_t maximum, Watch watch, size_t threads, Embed embed = {},
              size_t longest = std::numeric_limits<size_t>::max());
  // Waits for the answers in progress and drops the questions that wait.
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  // Returns false if `most` questions wait that are not abandoned.
  bool add(Question question);
  // Whether add() would return false. Looks for abandoned questions at most once per millisecond,
  // which keeps an overload cheap.
  bool is_full();
  size_t size() const;   // waiting questions, also if some of their sources were taken
  bool is_idle() const;  // no question waits or is being answered

 private:
  class Asked;
  class Call;
  struct Waiting {
    std::shared_ptr<Asked> asked;
    std::chrono::steady_clock::time_point since;
    size_t taken = 0;             // number of sources
    size_t weight = 0;            // of the sources taken since it was last requeued
    const Call* owner = nullptr;  // the call that answers a long question

    size_t left() const;
  };

  void work();
  void stop();
  void drop_abandoned();
  void gather(std::unique_lock<std::mutex>& lock);
  // The first question without an owner, or null.
  std::shared_ptr<Asked> first_free() const;
  size_t share() const;
  size_t weight(const std::string& source) const;
  void end(size_t sources);

  Ask ask_;
  Embed embed_;
  size_t max_;
  Watch watch_;
  size_t longest_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;
  std::chrono::steady_clock::time_point looked_ = {};  // last search of is_full()
  size_t answering_ = 0;                               // sources of the calls in progress
  bool is_ended_ = false;
  const size_t thread_count_;
  std::vector<std::thread> threads_;
};

}  // namespace attend
