#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "attend/kernels/helpers.h"

namespace attend {

// Threads that run jobs for other threads. Each uses one LibTorch thread, because the small
// products of a recurrent step gain nothing from more. Idle threads help the others with packed
// products (kernels/helpers.h), limited by the number of cores. The settings of calling threads do
// not change.
class WorkerThreads {
 public:
  // Starts at least one thread. Error if the system refuses a thread.
  explicit WorkerThreads(int64_t count);
  // Requires that no run() is in progress.
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  int64_t count() const { return static_cast<int64_t>(threads_.size()); }

  // Whether jobs wait for a thread; an endless job should then yield.
  bool are_awaited() const;

  // Runs work(0) ... work(jobs - 1), up to count() of them at once, and returns when all have
  // ended. Several threads may call run() at once; their jobs take turns. If jobs throw, no further
  // jobs of this call begin, and the exception of the job with the lowest number is rethrown.
  //
  // The last argument, if set, is called in the calling thread after each successful job, while
  // others run. It may call run(). An exception from it ends the call like an exception from a job
  // and is rethrown; the argument is not called again.
  //
  // A job may call run() too. Its thread then runs the jobs of that call itself, one after another:
  // waiting for other threads could deadlock.
  void run(int64_t jobs, const std::function<void(int64_t job)>& work,
           const std::function<void(int64_t job)>& tell = {});

 private:
  struct Call;
  void serve();
  void stop();
  bool is_one_of_them(std::thread::id thread) const;
  // Wakes a sleeping thread to help.
  void call_helper();
  // Must be called after each change of stopping_ or waiting_.
  void tell_whether_wanted() { wanted_ = stopping_ || !waiting_.empty(); }
  // Begins no more jobs of a call, and records the exception of the lowest job number.
  void abandon(Call& call, int64_t job, const std::exception_ptr& error);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call*> waiting_;  // calls with jobs that have not begun
  bool stopping_ = false;
  std::atomic<bool> wanted_ = false;            // a job waits, or all threads must end
  std::atomic<int64_t> sleeping_ = 0;           // number of threads that wait for a job
  std::atomic<bool> is_helper_called_ = false;  // called, but no thread has come yet
  kernels::Helpers helpers_;
  std::vector<std::thread> threads_;
};

}  // namespace attend
