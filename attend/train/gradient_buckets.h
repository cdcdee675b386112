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

// The gradients of replicas in buckets. Each bucket is sent to the other processes as soon as it is
// final, while backward computes earlier gradients (Li et al. 2020, "PyTorch Distributed", 3.2).
// Buckets are runs of whole parameters, from the last parameter backward, because backward reaches
// these first. All processes start the sums of buckets in that order, whatever the order of
// completion. Gradients that backward does not reach are summed after it. No other call of the
// world is allowed between the first backward of a step and sum().
class GradientBuckets {
 public:
  // `gradients`: per replica, the gradients of its parameters in order as one vector [P], float on
  // the CPU. A bucket has at least `bucket_size` numbers, except the last. With the default of 4
  // MB, transferring a sum over loopback takes ten times its latency.
  GradientBuckets(Communicator& world, const std::vector<ModulePtr>& replicas,
                  std::vector<at::Tensor> gradients, int64_t bucket_size = int64_t{1} << 20);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Announces that the next backward of a replica is its last of the step, so the gradients it
  // reaches are final. Called from the replica's thread.
  void begin_last_backward(int64_t replica);

  // Call once per step, after all backward calls. Sums the remaining buckets, and returns when the
  // first replica's vector holds the sum over all replicas of all processes. Results are
  // bit-identical in all processes, and for equal gradients reproducible.
  void sum(WorkerThreads& threads);

 private:
  struct Bucket {
    int64_t begin, size;
    int64_t parameters = 0;  // over all replicas, only parameters with gradients
    int64_t missing = 0;     // number of parameters that are not final
    bool is_added = false;   // whether the replicas' gradients are added
    std::function<void()> wait = {};
  };
  struct Watched {  // a parameter's gradient accumulator and hook
    std::remove_cvref_t<decltype(std::declval<at::Tensor>().grad_fn())> node;
    uintptr_t hook;
  };
  void watch(const at::Tensor& parameter, size_t bucket, size_t replica);
  void expect_all();
  void make_final(Bucket& bucket);
  void add_replicas(Bucket& bucket);

  Communicator& world_;
  const std::vector<at::Tensor> gradients_;
  std::vector<Bucket> buckets_;  // in summation order
  std::vector<Watched> watched_;
  std::vector<char> is_last_;  // whether a replica is in its last backward; only used by its thread
  std::mutex mutex_;           // protects missing, is_added, wait and begun_
  size_t begun_ = 0;           // number of started bucket sums
};

}  // namespace attend
