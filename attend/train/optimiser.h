#pragma once

#include <memory>
#include <vector>

#include "attend/kernels/adam.h"
#include "attend/nn/worker_threads.h"
#include "attend/parallel/communicator.h"
#include "attend/train/checkpoint.h"
#include "attend/train/flat_parameters.h"
#include "attend/train/gradient_buckets.h"
#include "attend/train/train_config.h"

namespace attend {

// Weights, gradients and moments of all replicas as flat vectors. Every replica's thread updates
// its own slice, so an update takes 1/replicas of the serial time. Results do not depend on timing.
class Optimiser {
 public:
  Optimiser(const TrainConfig& config, const std::vector<ModulePtr>& replicas,
            const ModulePtr& averaged, Communicator& world);

  // Zeroes the gradient of a replica; called from its thread.
  void clear_gradient(int64_t replica);

  // Announces that the next backward of a replica is its last of the step, so its gradients may be
  // sent to other processes meanwhile. Called from the replica's thread. No other call of the world
  // is allowed until sum_gradients.
  void begin_last_backward(int64_t replica);

  // Copies the weights, their average and the moments of rank 0 to all processes.
  void broadcast();
  // Calls broadcast() if the weights of the processes differ; returns whether they did. Different
  // processors may round a step differently.
  bool synchronise();

  // Sums the gradients of the replicas of all processes into the first replica's gradient, and adds
  // the gradient of the L2 penalty. Returns its norm.
  double sum_gradients(WorkerThreads& threads);

  // Scales the sum, with norm `norm`, to at most train.clip_norm. Then takes one step of Adam
  // (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019) at `rate` and updates
  // the average.
  void step(WorkerThreads& threads, double norm, double rate);

  bool weights_finite() const;
  void save(Checkpoint& checkpoint) const;
  // Error if the checkpoint has another number of parameters.
  void restore(const Checkpoint& checkpoint, const std::string& path);

 private:
  // The part of one device's vectors that one thread updates.
  struct Slice {
    size_t vector;
    int64_t begin, size;

    at::Tensor of(const std::vector<at::Tensor>& vectors) const {
      return vectors[vector].narrow(0, begin, size);
    }
  };
  void sum_replicas(WorkerThreads& threads);
  void step_slice(const Slice& slice, const kernels::Adam& adam) const;

  Communicator& world_;
  const double clip_norm_;
  const double weight_decay_;
  const double l2_;
  const double weight_average_;
  const double beta1_, beta2_, epsilon_;
  int64_t updates_ = 0;
  std::unique_ptr<FlatParameters> weights_, average_;
  // [P] per device and replica; the first replica receives the sum.
  std::vector<std::vector<at::Tensor>> gradients_;
  std::vector<at::Tensor> first_, second_;  // Adam's moments, [P] per device
  std::vector<at::Tensor> decayed_;         // 1 if a weight decays, otherwise 0
  std::vector<Slice> slices_;
  std::unique_ptr<GradientBuckets> buckets_;  // null if all gradients are summed after backward
};

}  // namespace attend
