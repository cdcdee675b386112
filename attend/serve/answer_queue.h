#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "attend/decode/request.h"
#include "attend/inference/model.h"

namespace attend {

// The sink of a client's requests. Functions of different requests may be called at once.
class ClientSink : public Sink {
 public:
  // Called instead of done() if the client asked for vectors.
  virtual void embedded(size_t number, Embedding embedding) = 0;
  // Called with the exception of a call, or of a function of this sink; maybe more than once.
  // cancelled() is true from then on.
  virtual void failed(const std::exception& error) = 0;
};

// The requests of one client, which wait together.
struct ClientRequests {
  std::vector<Request> requests;     // with equal options; their sinks are not used
  std::shared_ptr<ClientSink> sink;  // shared by the requests
  bool wants_vectors = false;        // instead of answers
  std::string prompt = {};           // before the texts of vectors, see Model::embed()
  // A single thread answers all requests of a long client, which leaves the model's other threads
  // to other clients.
  bool is_long = false;
};

// Maximum number of tokens handed out at once, unless a single source has more.
constexpr size_t max_tokens_together = 4096;

// Queue of the requests to a model, and the threads that run it. A thread takes its share of the
// waiting requests with equal options. It takes further ones as soon as the model accepts them next
// to the requests in progress, which costs less than one after another. Sampled answers are not
// computed together with other clients' answers.
// If the model is idle, a thread starts at once. Otherwise it waits up to some milliseconds while
// clients keep coming.
// Clients with equal options may overtake others until a fixed weight is taken; then the oldest
// client's requests run. Long sources weigh more. A client over that weight is requeued after each
// slice. Only one thread at a time takes requests of a long client.
// Cancelled requests stop before the next token or the next requests. An exception of a sink fails
// only its client. Answers do not depend on the other clients. For errors this requires a model
// that skips bad sources (ModelOptions::skip_bad).
class AnswerQueue {
 public:
  // Does the work of Model::answer_arriving, on any thread.
  using Ask = std::function<void(const Model::Arrivals& arrivals)>;
  // Does the work of Model::embed, on any thread.
  using Embed = std::function<std::vector<Embedding>(const std::vector<std::string>& sources,
                                                     const std::string& prompt)>;
  // Called when a thread takes requests, with the queue times of their clients and the number of
  // requests that the thread then answers.
  using Watch = std::function<void(const std::vector<double>& queued_seconds, size_t together)>;

  // `longest`: maximum number of tokens that the model reads of a source. Error if the system
  // cannot start the threads.
  AnswerQueue(Ask ask, size_t maximum, Watch watch, size_t threads, Embed embed = {},
              size_t longest = std::numeric_limits<size_t>::max());
  // Waits for the answers in progress and drops the clients that wait.
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  // Returns false if `maximum` clients wait that are not cancelled.
  bool add(ClientRequests client);
  // Whether add() would return false. Looks for cancelled clients at most once per millisecond,
  // which keeps an overload cheap.
  bool is_full();
  size_t size() const;   // waiting clients, also if some of their requests were taken
  bool is_idle() const;  // no request waits or is being answered

 private:
  class Call;
  struct Waiting {
    ClientRequests client;
    std::chrono::steady_clock::time_point since;
    size_t taken = 0;             // number of requests
    size_t weight = 0;            // weight of the requests taken since the last requeue
    const Call* owner = nullptr;  // the call that answers a long client

    size_t left() const { return client.requests.size() - taken; }
    bool is_cancelled() const { return client.sink->cancelled(0); }
  };

  void work();
  void stop();
  void drop_cancelled();
  void gather(std::unique_lock<std::mutex>& lock);
  const Waiting* first_free() const;  // the first client without an owner, or null
  size_t share() const;
  size_t weight(const std::string& source) const;
  void end(size_t requests);

  Ask ask_;
  Embed embed_;
  size_t max_;
  Watch watch_;
  size_t longest_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;
  std::chrono::steady_clock::time_point looked_ = {};  // last search of is_full()
  size_t answering_ = 0;                               // requests of the calls in progress
  bool is_ended_ = false;
  const size_t thread_count_;
  std::vector<std::thread> threads_;
};

}  // namespace attend
