#include "attend/nn/replica_threads.h"

#include <ATen/Parallel.h>

namespace attend {

ReplicaThreads::ReplicaThreads(int64_t replicas) : errors_(static_cast<size_t>(replicas)) {
  at::set_num_threads(1);
  for (int64_t replica = 1; replica < replicas; ++replica)
    threads_.emplace_back([this, replica] { serve(replica); });
}

ReplicaThreads::~ReplicaThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReplicaThreads::serve(int64_t replica) {
  at::set_num_threads(1);
  int64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) return;
    seen = round_;
    const auto& work = *work_;
    lock.unlock();
    std::exception_ptr error;
    try {
      work(replica);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    errors_[static_cast<size_t>(replica)] = error;
    if (--working_ == 0) changed_.notify_all();
  }
}

void ReplicaThreads::run(const std::function<void(int64_t)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    working_ = static_cast<int64_t>(threads_.size());
    ++round_;
  }
  changed_.notify_all();
  std::exception_ptr error;
  try {
    work(0);
  } catch (...) {
    error = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return working_ == 0; });
  errors_[0] = error;
  for (const std::exception_ptr& each : errors_)
    if (each) std::rethrow_exception(each);
}

}  // namespace attend
