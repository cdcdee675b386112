#include "attend/serve/answer_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "attend/nn/started_threads.h"

namespace attend {
namespace {

// Maximum number of requests per thread; more would only delay the first answer.
constexpr size_t max_together = 64;

// Maximum weight that is handed out at once. Also the weight that may overtake a client with
// other options before a thread takes no more and ends.
constexpr size_t max_weight = 256;

// A source of fewer than 2 * tokens_per_weight tokens weighs 1. bytes_per_token is an estimate.
constexpr size_t tokens_per_weight = max_tokens_together / max_weight, bytes_per_token = 4;

// While the model is busy, a thread waits while clients arrive within `gathering_pause` of
// each other, up to `longest_gathering`. Clients that were answered together send their next
// requests together.
constexpr std::chrono::microseconds gathering_pause{300};
constexpr std::chrono::microseconds longest_gathering{5000};

constexpr std::chrono::milliseconds looking_pause{1};

double seconds_since(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

// The requests that one thread answers at the same time.
class AnswerQueue::Call {
 public:
  // Starts with the waiting client `first`. Requires the queue's lock.
  Call(AnswerQueue& queue, const ClientRequests& first)
      : queue_(queue),
        first_(first.sink),
        options_(first.requests.at(0).options),
        wants_vectors_(first.wants_vectors),
        prompt_(first.prompt),
        is_long_(first.is_long) {}

  void run() {
    try {
      if (wants_vectors_) return embed();
      queue_.ask_([this](size_t answering) { return next(answering); });
    } catch (const std::exception& error) {
      if (!has_begun_) first_->failed(error);
      for (Held& each : held_) each.failed(error);
      queue_.end(held_.size());
    }
  }

 private:
  // The sink of a request in progress.
  class Held final : public ClientSink {
   public:
    Held(Call& call, std::shared_ptr<ClientSink> client)
        : call_(&call), client_(std::move(client)) {}

    bool cancelled(size_t number) override { return client_->cancelled(number); }
    void token(size_t number, size_t index, const Candidate& so_far) override {
      pass([&] { client_->token(number, index, so_far); });
    }
    void done(size_t number, Answer answer) override {
      pass([&] { client_->done(number, std::move(answer)); });
      call_->end(*this);
    }
    void embedded(size_t number, Embedding embedding) override {
      pass([&] { client_->embedded(number, std::move(embedding)); });
      call_->end(*this);
    }
    void failed(const std::exception& error) override { client_->failed(error); }

   private:
    // An exception fails only this client, not the others of the call.
    template <class Function>
    void pass(Function function) {
      try {
        function();
      } catch (const std::exception& error) {
        client_->failed(error);
      }
    }

    Call* call_;
    std::shared_ptr<ClientSink> client_;
  };

  void embed() {
    for (auto requests = next(0); !requests.empty(); requests = next(0)) {
      std::vector<std::string> sources;
      sources.reserve(requests.size());
      for (Request& request : requests) sources.push_back(std::move(request.source));
      std::vector<Embedding> embeddings = queue_.embed_(sources, prompt_);
      for (size_t i = 0; i < requests.size(); ++i)
        held_.front().embedded(requests[i].number, std::move(embeddings[i]));
    }
  }

  bool shares(const ClientRequests& client) const {
    if (client.sink == first_) return true;
    if (client.wants_vectors || wants_vectors_)
      return client.wants_vectors == wants_vectors_ && client.prompt == prompt_;
    return !options_.sampling && client.requests.at(0).options == options_;
  }

  // Takes the next requests; `answering`: number of requests in progress.
  std::vector<Request> next(size_t answering) {
    const std::lock_guard lock(queue_.mutex_);
    has_begun_ = true;
    queue_.drop_cancelled();
    const size_t maximum = wants_vectors_ ? max_weight : is_long_ ? max_together : queue_.share();
    std::vector<Request> taken;
    std::vector<double> queued_seconds;
    size_t weight = 0;
    const auto takes_more = [&] {
      return answering + taken.size() < maximum && weight < max_weight && overtaking_ < max_weight;
    };
    auto one = queue_.waiting_.begin();
    while (one != queue_.waiting_.end() && takes_more()) {
      const auto now = one++;
      if (now->owner != nullptr && now->owner != this) continue;
      if (!shares(now->client)) {
        is_overtaking_ = true;
        continue;
      }
      if (now->taken == 0) queued_seconds.push_back(seconds_since(now->since));
      for (; now->left() > 0 && takes_more(); ++now->taken) {
        Request& request = now->client.requests[now->taken];
        const size_t more = queue_.weight(request.source);
        weight += more;
        now->weight += more;
        overtaking_ += is_overtaking_ ? more : 0;
        request.sink = &held_.emplace_back(*this, now->client.sink);
        taken.push_back(std::move(request));
        if (now->client.is_long) now->owner = this;
      }
      if (now->left() == 0)
        queue_.waiting_.erase(now);
      else if (now->weight >= max_weight)
        requeue(now);
    }
    queue_.answering_ += taken.size();
    if (!queued_seconds.empty()) queue_.watch_(queued_seconds, answering + taken.size());
    if (!queue_.waiting_.empty()) queue_.changed_.notify_one();
    return taken;
  }

  // Requeues the client. Its slice counts as overtaking the others.
  void requeue(std::list<Waiting>::iterator one) {
    overtaking_ += std::exchange(one->weight, 0);
    queue_.waiting_.splice(queue_.waiting_.end(), queue_.waiting_, one);
  }

  void end(const Held& held) {
    held_.remove_if([&](const Held& one) { return &one == &held; });
    queue_.end(1);
  }

  AnswerQueue& queue_;
  const std::shared_ptr<ClientSink> first_;
  const SearchOptions options_;
  const bool wants_vectors_;
  const std::string prompt_;
  const bool is_long_;
  std::list<Held> held_;
  bool has_begun_ = false;      // next() was called
  bool is_overtaking_ = false;  // passed over a client with other options
  size_t overtaking_ = 0;       // weight taken since then
};

AnswerQueue::AnswerQueue(Ask ask, size_t maximum, Watch watch, size_t threads, Embed embed,
                         size_t longest)
    : ask_(std::move(ask)),
      embed_(std::move(embed)),
      max_(maximum),
      watch_(std::move(watch)),
      longest_(longest),
      thread_count_(threads) {
  start_threads(
      threads_, thread_count_, [this] { work(); }, [this] { stop(); });
}

AnswerQueue::~AnswerQueue() { stop(); }

void AnswerQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool AnswerQueue::add(ClientRequests client) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= max_) drop_cancelled();
    if (waiting_.size() >= max_) return false;
    waiting_.push_back({std::move(client), std::chrono::steady_clock::now()});
  }
  changed_.notify_one();
  return true;
}

bool AnswerQueue::is_full() {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() < max_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < looking_pause) return true;
  looked_ = now;
  drop_cancelled();
  return waiting_.size() >= max_;
}

size_t AnswerQueue::size() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

bool AnswerQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && answering_ == 0;
}

void AnswerQueue::drop_cancelled() {
  std::erase_if(waiting_, [](const Waiting& one) { return one.is_cancelled(); });
}

void AnswerQueue::gather(std::unique_lock<std::mutex>& lock) {
  const auto end = std::chrono::steady_clock::now() + longest_gathering;
  size_t before = 0;
  while (!is_ended_ && answering_ > 0 && waiting_.size() > before &&
         std::chrono::steady_clock::now() < end) {
    before = waiting_.size();
    changed_.wait_for(lock, gathering_pause, [this] { return is_ended_; });
  }
}

size_t AnswerQueue::weight(const std::string& source) const {
  const size_t tokens = std::min(source.size() / bytes_per_token, longest_);
  return std::max<size_t>(1, tokens / tokens_per_weight);
}

// Equal shares keep the threads equally busy.
size_t AnswerQueue::share() const {
  size_t requests = answering_;
  for (const Waiting& one : waiting_) requests += one.left();
  return std::min((requests + thread_count_ - 1) / thread_count_, max_together);
}

const AnswerQueue::Waiting* AnswerQueue::first_free() const {
  for (const Waiting& one : waiting_)
    if (one.owner == nullptr) return &one;
  return nullptr;
}

void AnswerQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ended_ || first_free() != nullptr; });
    gather(lock);
    if (is_ended_) return;
    drop_cancelled();
    const Waiting* first = first_free();
    if (first == nullptr) continue;
    Call call(*this, first->client);
    lock.unlock();
    call.run();
    lock.lock();
    for (Waiting& one : waiting_)
      if (one.owner == &call) one.owner = nullptr;
  }
}

void AnswerQueue::end(size_t requests) {
  const std::lock_guard lock(mutex_);
  answering_ -= requests;
}

}  // namespace attend
