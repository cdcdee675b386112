#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attend {

// Threads for work that would block the server's thread, on which all clients depend.
class WorkThreads {
 public:
  // Error if the system cannot start the threads.
  WorkThreads(size_t threads, size_t maximum);
  // Waits for the work in progress and drops the work that waits.
  ~WorkThreads();
  WorkThreads(const WorkThreads&) = delete;
  WorkThreads& operator=(const WorkThreads&) = delete;

  // Returns false if `most` works already wait. A work must not throw.
  bool add(std::function<void()> work);
  size_t size() const;   // works that wait
  bool is_idle() const;  // nothing waits or is in progress

 private:
  void serve();
  void stop();

  size_t max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  size_t working_ = 0;  // threads that run a work
  bool is_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attend
