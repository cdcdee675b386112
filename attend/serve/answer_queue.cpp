#include "attend/serve/answer_queue.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <utility>

namespace attend {
namespace {

// More at once would only keep the first waiting.
constexpr size_t most_together = 64;
constexpr size_t most_vectors = 256;

// So many sources overtake a question with other options before a thread takes no more and ends.
constexpr size_t most_overtaking = 256;

// While the model is busy, a call waits for further questions as long as they come so soon behind
// each other, but no longer than this: clients that were answered together ask together.
constexpr std::chrono::microseconds gathering_pause{300};
constexpr std::chrono::microseconds longest_gathering{5000};

bool share_options(const Question& one, const Question& other) {
  return &one == &other || (!one.options.empty() && one.options == other.options);
}

double seconds_since(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

// A question, and what has been answered of it by whichever threads.
class AnswerQueue::Asked {
 public:
  explicit Asked(Question question)
      : question_(std::move(question)),
        answers_(question_.sources.size()),
        left_(answers_.size()) {}

  const Question& question() const { return question_; }

  // Whether no more need be computed.
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

  void take(size_t i, Answer answer) {
    {
      const std::lock_guard lock(mutex_);
      answers_[i] = std::move(answer);
      if (--left_ > 0) return;
    }
    // What was stopped is no answer.
    if (!is_over()) tell(question_.answered, answers_);
  }

  void fail(const std::exception& error) {
    const std::lock_guard lock(telling_);
    end(error);
  }

  // Calls one of the question's functions, while no other thread calls one. What that throws is
  // this question's failure alone: the others of the call have their answers.
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
  void end(const std::exception& error) {
    if (!is_over_.exchange(true)) question_.failed(error);
  }

  const Question question_;
  std::mutex mutex_, telling_;
  std::vector<Answer> answers_;
  size_t left_;
  std::atomic<bool> is_over_ = false;  // it has failed
};

// What one thread is answering at once.
class AnswerQueue::Call {
 public:
  // Begins by the question that has waited longest. The queue is locked.
  explicit Call(AnswerQueue& queue) : queue_(queue), first_(queue.waiting_.front().asked) {}

  void run() {
    try {
      queue_.ask_(first_->question().search, [this](size_t answering) { return next(answering); });
    } catch (const std::exception& error) {
      size_t sources = 0;
      for (const auto& [asked, count] : held_) {
        asked->fail(error);
        sources += count;
      }
      queue_.end(sources);
    }
  }

 private:
  std::vector<ArrivingSource> next(size_t answering) {
    const std::lock_guard lock(queue_.mutex_);
    queue_.drop_abandoned();
    const size_t most = queue_.share();
    std::vector<ArrivingSource> sources;
    std::vector<double> queued_seconds;
    auto one = queue_.waiting_.begin();
    while (one != queue_.waiting_.end() && answering + sources.size() < most &&
           overtaking_ < most_overtaking) {
      if (!share_options(one->asked->question(), first_->question())) {
        is_overtaking_ = true;
        ++one;
        continue;
      }
      if (one->taken == 0) queued_seconds.push_back(seconds_since(one->since));
      for (; one->left() > 0 && answering + sources.size() < most; ++one->taken) {
        sources.push_back(source(one->asked, one->taken));
        overtaking_ += is_overtaking_ ? 1 : 0;
      }
      if (one->left() == 0) one = queue_.waiting_.erase(one);
    }
    queue_.answering_ += sources.size();
    if (!queued_seconds.empty()) queue_.watch_(queued_seconds, answering + sources.size());
    if (!queue_.waiting_.empty()) queue_.changed_.notify_one();
    return sources;
  }

  ArrivingSource source(const std::shared_ptr<Asked>& asked, size_t i) {
    ArrivingSource source = asked->source(i);
    ++held_[asked];
    source.take = [this, asked, i](Answer answer) {
      asked->take(i, std::move(answer));
      if (--held_[asked] == 0) held_.erase(asked);
      queue_.end(1);
    };
    return source;
  }

  AnswerQueue& queue_;
  const std::shared_ptr<Asked> first_;
  std::map<std::shared_ptr<Asked>, size_t> held_;  // how many sources of each are being answered
  bool is_overtaking_ = false;                     // there are questions with other options
  size_t overtaking_ = 0;                          // sources that were taken since
};

size_t AnswerQueue::Waiting::left() const { return asked->question().sources.size() - taken; }

AnswerQueue::AnswerQueue(Ask ask, size_t most, Watch watch, size_t threads, Embed embed)
    : ask_(std::move(ask)),
      embed_(std::move(embed)),
      most_(most),
      watch_(std::move(watch)),
      thread_count_(threads) {
  for (size_t i = 0; i < thread_count_; ++i) threads_.emplace_back([this] { work(); });
}

AnswerQueue::~AnswerQueue() {
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
    if (waiting_.size() >= most_) drop_abandoned();
    if (waiting_.size() >= most_) return false;
    waiting_.push_back(
        {std::make_shared<Asked>(std::move(question)), std::chrono::steady_clock::now()});
  }
  changed_.notify_one();
  return true;
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

// Each thread has its share of all sources, so that none answers many while another answers few.
size_t AnswerQueue::share() const {
  size_t sources = answering_;
  for (const Waiting& one : waiting_) sources += one.left();
  return std::min((sources + thread_count_ - 1) / thread_count_, most_together);
}

void AnswerQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ended_ || !waiting_.empty(); });
    gather(lock);
    if (is_ended_) return;
    drop_abandoned();
    if (waiting_.empty()) continue;
    if (waiting_.front().asked->question().embedded) {
      embed(lock);
      continue;
    }
    Call call(*this);
    lock.unlock();
    call.run();
    lock.lock();
  }
}

void AnswerQueue::end(size_t sources) {
  const std::lock_guard lock(mutex_);
  answering_ -= sources;
}

void AnswerQueue::embed(std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<Asked>> batch;
  std::vector<double> queued_seconds;
  std::vector<std::string> sources;
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const Question& question = one->asked->question();
    const bool fits = sources.empty() || sources.size() + question.sources.size() <= most_vectors;
    if (!question.embedded || !fits) {
      ++one;
      continue;
    }
    sources.insert(sources.end(), question.sources.begin(), question.sources.end());
    queued_seconds.push_back(seconds_since(one->since));
    batch.push_back(std::move(one->asked));
    one = waiting_.erase(one);
  }
  answering_ += sources.size();
  watch_(queued_seconds, sources.size());
  lock.unlock();
  try {
    std::vector<Embedding> found = embed_(sources);
    auto next = std::make_move_iterator(found.begin());
    for (const auto& asked : batch) {
      const auto end = next + std::ssize(asked->question().sources);
      asked->tell(asked->question().embedded, std::vector<Embedding>(next, end));
      next = end;
    }
  } catch (const std::exception& error) {
    for (const auto& asked : batch) asked->fail(error);
  }
  batch.clear();
  lock.lock();
  answering_ -= sources.size();
}

}  // namespace attend
