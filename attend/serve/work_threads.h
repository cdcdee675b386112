#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attend {

// Threads for what the server's own thread must not compute, as all clients wait for that one.
class WorkThreads {
 public:
  // Error where the system starts no more.
  WorkThreads(size_t threads, size_t most);
  // Ends when what the threads are at is done. What waits is dropped.
  ~WorkThreads();
  WorkThreads(const WorkThreads&) = delete;
  WorkThreads& operator=(const WorkThreads&) = delete;

  // False where `most` works wait already. A work must not throw.
  bool add(std::function<void()> work);
  size_t size() const;   // works that wait
  bool is_idle() const;  // nothing waits and nothing is being done

 private:
  void serve();
  void stop();

  size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  size_t working_ = 0;  // threads that are at a work
  bool is_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attend
