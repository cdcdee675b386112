#include "attend/nn/worker_threads.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>

#include "attend/kernels/cpu.h"
#include "attend/nn/started_threads.h"

namespace attend {
namespace {

// A helper keeps a core busy while it waits. A few helpers give most of the gain; a helper without
// its own core slows down other threads.
int64_t max_helpers(int64_t threads) {
  constexpr int64_t useful = 3;
  const Cpu cpu = probe_cpu();
  const int64_t cores =
      cpu.quota > 0 ? std::min(cpu.cores, static_cast<int64_t>(cpu.quota)) : cpu.cores;
  return std::clamp<int64_t>(std::min(threads, cores) - 1, 0, useful);
}

}  // namespace

struct WorkerThreads::Call {
  const std::function<void(int64_t)>& work;
  int64_t jobs;
  int64_t begun = 0, ended = 0;
  bool tells = false;
  std::deque<int64_t> unreported = {};  // jobs that ended without an exception
  int64_t failed = jobs;                // number of the first job that threw
  std::exception_ptr error = {};

  bool is_done() const { return ended == begun && (begun == jobs || error); }
};

WorkerThreads::WorkerThreads(int64_t count)
    : helpers_(max_helpers(count), [this] { call_helper(); }) {
  start_threads(
      threads_, static_cast<size_t>(std::max<int64_t>(1, count)), [this] { serve(); },
      [this] { stop(); });
}

WorkerThreads::~WorkerThreads() { stop(); }

void WorkerThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    tell_whether_wanted();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::call_helper() {
  if (sleeping_ == 0 || is_helper_called_) return;
  {
    const std::lock_guard lock(mutex_);
    is_helper_called_ = true;
  }
  changed_.notify_all();
}

void WorkerThreads::serve() {
  // at::set_num_threads would also change threads that start later. LibTorch sets the number of
  // this thread on the first call of at::get_num_threads.
  at::get_num_threads();
  omp_set_num_threads(1);
  kernels::help_this_thread(&helpers_);
  std::unique_lock lock(mutex_);
  while (true) {
    ++sleeping_;
    changed_.wait(lock, [&] { return wanted_ || is_helper_called_; });
    --sleeping_;
    if (!wanted_) {
      is_helper_called_ = false;
      lock.unlock();
      helpers_.help([this] { return wanted_.load(); });
      lock.lock();
      continue;
    }
    if (waiting_.empty()) return;
    Call& call = *waiting_.front();
    waiting_.pop_front();
    const int64_t job = call.begun++;
    if (call.begun < call.jobs) waiting_.push_back(&call);
    tell_whether_wanted();
    lock.unlock();
    std::exception_ptr error;
    try {
      call.work(job);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    ++call.ended;
    if (error) {
      abandon(call, job, error);
    } else if (call.tells) {
      call.unreported.push_back(job);
    }
    if (call.tells || call.is_done()) changed_.notify_all();
  }
}

bool WorkerThreads::are_awaited() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

void WorkerThreads::abandon(Call& call, int64_t job, const std::exception_ptr& error) {
  if (job >= call.failed) return;
  call.failed = job;
  call.error = error;
  std::erase(waiting_, &call);
  tell_whether_wanted();
}

bool WorkerThreads::is_one_of_them(std::thread::id thread) const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [thread](const std::thread& own) { return own.get_id() == thread; });
}

void WorkerThreads::run(int64_t jobs, const std::function<void(int64_t)>& work,
                        const std::function<void(int64_t)>& tell) {
  if (jobs <= 0) return;
  if (is_one_of_them(std::this_thread::get_id())) {
    for (int64_t job = 0; job < jobs; ++job) {
      work(job);
      if (tell) tell(job);
    }
    return;
  }
  Call call{.work = work, .jobs = jobs, .tells = static_cast<bool>(tell)};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&call);
  tell_whether_wanted();
  changed_.notify_all();
  while (true) {
    changed_.wait(lock, [&] { return !call.unreported.empty() || call.is_done(); });
    if (call.unreported.empty()) break;
    const int64_t job = call.unreported.front();
    call.unreported.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      tell(job);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (!error) continue;
    constexpr int64_t before_all = -1;
    abandon(call, before_all, error);
    changed_.wait(lock, [&] { return call.is_done(); });
    break;
  }
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace attend
