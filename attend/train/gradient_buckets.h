#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "attend/nn/worker_threads.h"
#include "attend/parallel/communicator.h"
#include "attend/train/flat_parameters.h"

namespace attend {

// The gradients of replicas in buckets, of which each travels to the other processes as soon as it
// is final, while backward computes those before it (Li et al. 2020, "PyTorch Distributed", 3.2).
// Buckets are runs of whole parameters, from the last one back, for backward reaches these first.
// All processes begin the sums of buckets in that order, whatever the order in which they become
// final; what backward does not reach is summed after it. No other call of the world may happen
// between the first backward of a step and sum().
class GradientBuckets {
 public:
  // `gradients`: for each replica those of its parameters as one vector [P], float on the CPU, in
  // their order. A bucket has at least `bucket_size` numbers, the last one excepted. The default, 4
  // MB, is the size from which the bytes of a sum by loopback take ten times its latency.
  GradientBuckets(Communicator& world, const std::vector<ModulePtr>& replicas,
                  std::vector<at::Tensor> gradients, int64_t bucket_size = int64_t{1} << 20);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Tells that the next backward of a replica is its last one of the step: what that reaches is
  // final. Called from the replica's thread.
  void begin_last_backward(int64_t replica);

  // Once a step, after all backwards: sums what has not been and returns when the first replica's
  // vector has the sum over all replicas of all processes. Every process gets the same bits, and
  // gets them again of the same gradients.
  void sum(WorkerThreads& threads);

 private:
  struct Bucket {
    int64_t begin, size;
    int64_t parameters = 0;  // of all replicas, those that get a gradient
    int64_t missing = 0;     // of these, those that are not final
    bool is_added = false;   // the replicas' gradients are
    std::function<void()> wait = {};
  };
  struct Watched {  // a parameter, by the node that adds to its gradient
    std::remove_cvref_t<decltype(std::declval<at::Tensor>().grad_fn())> node;
    uintptr_t hook;
  };
  void watch(const at::Tensor& parameter, size_t bucket, size_t replica);
  void expect_all();
  void make_final(Bucket& bucket);
  void add_replicas(Bucket& bucket);

  Communicator& world_;
  const std::vector<at::Tensor> gradients_;
  std::vector<Bucket> buckets_;  // in the order of their sums
  std::vector<Watched> watched_;
  std::vector<char> is_last_;  // whether a replica is in its last backward; its thread's own
  std::mutex mutex_;           // of missing, is_added, wait and begun_
  size_t begun_ = 0;           // of the buckets' sums
};

}  // namespace attend
