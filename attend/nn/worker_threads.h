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

// Threads that compute what others ask for. Each uses one thread of LibTorch: the small products of
// a recurrent step do not gain from more. Those that have no job help the others with packed
// products (kernels/helpers.h), as many as there are cores for them. The threads of the callers
// keep their settings.
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
  //
  // A job may call run() in turn, too. Its thread does that call's jobs itself, one after another:
  // it would wait for itself where no other thread is free.
  void run(int64_t jobs, const std::function<void(int64_t job)>& work,
           const std::function<void(int64_t job)>& tell = {});

 private:
  struct Call;
  void serve();
  void stop();
  bool is_one_of_them(std::thread::id thread) const;
  // Has a thread that sleeps help.
  void call_helper();
  // After each change of what it says.
  void tell_whether_wanted() { wanted_ = stopping_ || !waiting_.empty(); }
  // Begins no more jobs of a call, which ends by the exception of the first by number.
  void abandon(Call& call, int64_t job, const std::exception_ptr& error);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call*> waiting_;  // those with jobs that have not begun
  bool stopping_ = false;
  std::atomic<bool> wanted_ = false;            // there is a job to begin, or all end
  std::atomic<int64_t> sleeping_ = 0;           // threads that wait for a job
  std::atomic<bool> is_helper_called_ = false;  // and none has come so far
  kernels::Helpers helpers_;
  std::vector<std::thread> threads_;
};

}  // namespace attend
