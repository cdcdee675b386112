#include "attend/serve/work_threads.h"

#include <utility>

#include "attend/nn/started_threads.h"

namespace attend {

WorkThreads::WorkThreads(size_t threads, size_t maximum) : max_(maximum) {
  start_threads(
      threads_, threads, [this] { serve(); }, [this] { stop(); });
}

WorkThreads::~WorkThreads() { stop(); }

void WorkThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkThreads::add(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= max_) return false;
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return true;
}

size_t WorkThreads::size() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

bool WorkThreads::is_idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && working_ == 0;
}

void WorkThreads::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ended_ || !waiting_.empty(); });
    if (is_ended_) return;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    ++working_;
    lock.unlock();
    work();
    work = nullptr;  // destroys its captures before is_idle() can return true
    lock.lock();
    --working_;
  }
}

}  // namespace attend
