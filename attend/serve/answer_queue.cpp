#include "attend/serve/answer_queue.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "attend/nn/started_threads.h"

namespace attend {
namespace {

// Maximum number of sources per thread; more would only delay the first answer.
constexpr size_t max_together = 64;

// Maximum weight that is handed out at once. Also the weight that may overtake a question with
// other options before a thread takes no more and ends.
constexpr size_t max_weight = 256;

// A source of fewer than 2 * tokens_per_weight tokens weighs 1. bytes_per_token is an estimate.
constexpr size_t tokens_per_weight = max_tokens_together / max_weight, bytes_per_token = 4;

// While the model is busy, a thread waits while questions arrive within `gathering_pause` of
// each other, up to `longest_gathering`. Clients that were answered together send their next
// requests together.
constexpr std::chrono::microseconds gathering_pause{300};
constexpr std::chrono::microseconds longest_gathering{5000};

constexpr std::chrono::milliseconds looking_pause{1};

bool share_options(const Question& one, const Question& other) {
  return &one == &other || (!one.options.empty() && one.options == other.options);
}

double seconds_since(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

// A question, and its answers so far from all threads.
class AnswerQueue::Asked {
 public:
  explicit Asked(Question question)
      : question_(std::move(question)),
        answers_(question_.embedded ? 0 : question_.sources.size()),
        embeddings_(question_.embedded ? question_.sources.size() : 0),
        left_(question_.sources.size()) {}

  const Question& question() const { return question_; }

  // Whether the computation can stop.
  bool is_over() const { return is_over_ || question_.is_abandoned(); }

  ArrivingSource source(size_t i) {
    ArrivingSource source{
        .source = question_.sources[i],
        .prefix = question_.prefixes.empty() ? "" : question_.prefixes[i],
        .number = i,
        .is_stopped = [this] { return is_over(); },
    };
    if (question_.grows)
      source.grows = [this, i](size_t answer, const Candidate& so_far) {
        tell(question_.grows, i, answer, so_far);
      };
    return source;
  }

  void take(size_t i, Answer answer) { take(i, std::move(answer), answers_, question_.answered); }
  void take(size_t i, Embedding embedding) {
    take(i, std::move(embedding), embeddings_, question_.embedded);
  }

  void fail(const std::exception& error) {
    const std::lock_guard lock(telling_);
    end(error);
  }

  // Calls one of the question's functions; calls are serialised. An exception fails only this
  // question, not the others of the call.
  template <class Function, class... Told>
  void tell(const Function& function, const Told&... told) {
    const std::lock_guard lock(telling_);
    try {
      if (!is_over_) function(told...);
    } catch (const std::exception& error) {
      end(error);
    }
  }

 private:
  template <class Result>
  void take(size_t i, Result result, std::vector<Result>& results,
            const std::function<void(const std::vector<Result>&)>& told) {
    {
      const std::lock_guard lock(mutex_);
      results[i] = std::move(result);
      if (--left_ > 0) return;
    }
    // Results of stopped sources are not answers.
    if (!is_over()) tell(told, results);
  }

  void end(const std::exception& error) {
    if (!is_over_.exchange(true)) question_.failed(error);
  }

  const Question question_;
  std::mutex mutex_, telling_;
  std::vector<Answer> answers_;
  std::vector<Embedding> embeddings_;
  size_t left_;
  std::atomic<bool> is_over_ = false;  // the question has failed
};

// The sources that one thread answers at the same time.
class AnswerQueue::Call {
 public:
  // Starts with the waiting question `first`. Requires the queue's lock.
  Call(AnswerQueue& queue, std::shared_ptr<Asked> first)
      : queue_(queue), first_(std::move(first)) {}

  void run() {
    try {
      if (first_->question().embedded) return embed();
      queue_.ask_(first_->question().search, [this](size_t answering) {
        std::vector<ArrivingSource> sources;
        for (const Taken& each : next(answering)) sources.push_back(source(each));
        return sources;
      });
    } catch (const std::exception& error) {
      // If the model refuses the options, the first question still waits and only it fails.
      if (!has_begun_) first_->fail(error);
      size_t sources = 0;
      for (const auto& [asked, count] : held_) {
        asked->fail(error);
        sources += count;
      }
      queue_.end(sources);
    }
  }

 private:
  struct Taken {
    std::shared_ptr<Asked> asked;
    size_t source;
  };

  void embed() {
    for (auto taken = next(0); !taken.empty(); taken = next(0)) {
      std::vector<std::string> sources;
      sources.reserve(taken.size());
      for (const Taken& each : taken)
        sources.push_back(each.asked->question().sources[each.source]);
      std::vector<Embedding> embeddings = queue_.embed_(sources);
      for (size_t i = 0; i < taken.size(); ++i) give(taken[i], std::move(embeddings[i]));
    }
  }

  // Takes the next sources; `answering`: number of sources in progress.
  std::vector<Taken> next(size_t answering) {
    const std::lock_guard lock(queue_.mutex_);
    has_begun_ = true;
    queue_.drop_abandoned();
    const size_t maximum = first_->question().embedded  ? max_weight
                           : first_->question().is_long ? max_together
                                                        : queue_.share();
    std::vector<Taken> taken;
    std::vector<double> queued_seconds;
    size_t weight = 0;
    const auto takes_more = [&] {
      return answering + taken.size() < maximum && weight < max_weight && overtaking_ < max_weight;
    };
    auto one = queue_.waiting_.begin();
    while (one != queue_.waiting_.end() && takes_more()) {
      const auto now = one++;
      if (now->owner != nullptr && now->owner != this) continue;
      if (!share_options(now->asked->question(), first_->question())) {
        is_overtaking_ = true;
        continue;
      }
      if (now->taken == 0) queued_seconds.push_back(seconds_since(now->since));
      for (; now->left() > 0 && takes_more(); ++now->taken) {
        const size_t more = queue_.weight(now->asked->question().sources[now->taken]);
        weight += more;
        now->weight += more;
        overtaking_ += is_overtaking_ ? more : 0;
        taken.push_back({now->asked, now->taken});
        ++held_[now->asked];
        if (now->asked->question().is_long) now->owner = this;
      }
      if (now->left() == 0)
        queue_.waiting_.erase(now);
      else if (now->weight >= max_weight)
        put_behind(now);
    }
    queue_.answering_ += taken.size();
    if (!queued_seconds.empty()) queue_.watch_(queued_seconds, answering + taken.size());
    if (!queue_.waiting_.empty()) queue_.changed_.notify_one();
    return taken;
  }

  // Requeues the question. Its slice counts as overtaking the others.
  void put_behind(std::list<Waiting>::iterator one) {
    overtaking_ += std::exchange(one->weight, 0);
    queue_.waiting_.splice(queue_.waiting_.end(), queue_.waiting_, one);
  }

  ArrivingSource source(const Taken& taken) {
    ArrivingSource source = taken.asked->source(taken.source);
    source.take = [this, taken](Answer answer) { give(taken, std::move(answer)); };
    return source;
  }

  template <class Result>
  void give(const Taken& taken, Result result) {
    taken.asked->take(taken.source, std::move(result));
    if (--held_[taken.asked] == 0) held_.erase(taken.asked);
    queue_.end(1);
  }

  AnswerQueue& queue_;
  const std::shared_ptr<Asked> first_;
  std::map<std::shared_ptr<Asked>, size_t> held_;  // number of sources in progress per question
  bool has_begun_ = false;                         // next() was called
  bool is_overtaking_ = false;                     // passed over a question with other options
  size_t overtaking_ = 0;                          // weight taken since then
};

size_t AnswerQueue::Waiting::left() const { return asked->question().sources.size() - taken; }

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

bool AnswerQueue::add(Question question) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= max_) drop_abandoned();
    if (waiting_.size() >= max_) return false;
    waiting_.push_back(
        {std::make_shared<Asked>(std::move(question)), std::chrono::steady_clock::now()});
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
  drop_abandoned();
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

void AnswerQueue::drop_abandoned() {
  std::erase_if(waiting_, [](const Waiting& one) { return one.asked->is_over(); });
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
  size_t sources = answering_;
  for (const Waiting& one : waiting_) sources += one.left();
  return std::min((sources + thread_count_ - 1) / thread_count_, max_together);
}

std::shared_ptr<AnswerQueue::Asked> AnswerQueue::first_free() const {
  for (const Waiting& one : waiting_)
    if (one.owner == nullptr) return one.asked;
  return nullptr;
}

void AnswerQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ended_ || first_free() != nullptr; });
    gather(lock);
    if (is_ended_) return;
    drop_abandoned();
    const std::shared_ptr<Asked> first = first_free();
    if (first == nullptr) continue;
    Call call(*this, first);
    lock.unlock();
    call.run();
    lock.lock();
    for (Waiting& one : waiting_)
      if (one.owner == &call) one.owner = nullptr;
  }
}

void AnswerQueue::end(size_t sources) {
  const std::lock_guard lock(mutex_);
  answering_ -= sources;
}

}  // namespace attend
