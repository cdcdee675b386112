#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attend {

// Threads that run the same work for replicas 0..n-1 at once; replica 0 runs on the caller's. Each
// computes with one thread of its own: small recurrent steps do not gain from more.
class ReplicaThreads {
 public:
  explicit ReplicaThreads(int64_t replicas);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // Runs work(replica) for every replica and returns when all are done. Rethrows the first
  // replica's exception.
  void run(const std::function<void(int64_t)>& work);

 private:
  void serve(int64_t replica);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(int64_t)>* work_ = nullptr;
  int64_t round_ = 0;
  int64_t working_ = 0;
  bool stopping_ = false;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

}  // namespace attend
