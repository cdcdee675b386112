#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attend {

// Threads that compute what others ask for. Each uses one thread of LibTorch: the small products of
// a recurrent step do not gain from more. The threads of the callers keep their settings.
class WorkerThreads {
 public:
  // At least one. Error where the system starts no more.
  explicit WorkerThreads(int64_t count);
  // No call of run() may be under way.
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  int64_t count() const { return static_cast<int64_t>(threads_.size()); }

  // Whether jobs wait for a thread, so that one which has no end should give way.
  bool are_awaited() const;

  // Runs work(0) ... work(jobs - 1), up to count() of them at once, and returns when all have
  // ended. Several threads may call at once; the jobs of their calls take turns. When jobs throw,
  // those that have not begun are left out, and the exception of the first by number is thrown.
  //
  // `tell`, if any, is called by the calling thread for each job that has ended well, while others
  // run. It may call run() in turn. What it throws ends the call, as what a job throws does, and is
  // thrown; nothing is told after it.
  void run(int64_t jobs, const std::function<void(int64_t job)>& work,
           const std::function<void(int64_t job)>& tell = {});

 private:
  struct Call;
  void serve();
  void stop();
  // Begins no more jobs of a call, which ends by the exception of the first by number.
  void abandon(Call& call, int64_t job, const std::exception_ptr& error);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call*> waiting_;  // those with jobs that have not begun
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attend
