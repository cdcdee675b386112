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

// Weights, gradients and moments of all replicas as flat vectors. Every replica's thread updates a
// slice of its own, so an update costs 1/replicas of a serial one, and is the same at every timing.
class Optimiser {
 public:
  Optimiser(const TrainConfig& config, const std::vector<ModulePtr>& replicas,
            const ModulePtr& averaged, Communicator& world);

  // Zeroes the gradient of a replica; called from its thread.
  void clear_gradient(int64_t replica);

  // Tells that the next backward of a replica is its last one of the step, so that what it computes
  // may travel to other processes meanwhile; called from its thread. From there to sum_gradients no
  // other call of the world may happen.
  void begin_last_backward(int64_t replica);

  // Takes over the weights, their average and the moments of rank 0.
  void broadcast();
  // The same where the weights of the processes differ, and whether they did. Different processors
  // may round a step differently.
  bool bring_together();

  // Sums the gradients of the replicas, and of all processes, into that of the first, with that of
  // the L2 penalty; returns its norm.
  double sum_gradients(WorkerThreads& threads);

  // Scales the sum, whose norm is `norm`, to at most train.clip_norm, takes one step of Adam
  // (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019) at `rate` and moves
  // the average.
  void step(WorkerThreads& threads, double norm, double rate);

  bool weights_finite() const;
  void save(Checkpoint& checkpoint) const;
  // Error when the checkpoint has another number of parameters.
  void restore(const Checkpoint& checkpoint, const std::string& path);

 private:
  // What one thread updates: a part of the vectors of one device.
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
  // [P] of each device, of each replica; the first takes the sum.
  std::vector<std::vector<at::Tensor>> gradients_;
  std::vector<at::Tensor> first_, second_;  // [P] of each device: Adam's moments
  std::vector<at::Tensor> decayed_;         // 1 where a weight decays, 0 elsewhere
  std::vector<Slice> slices_;
  std::unique_ptr<GradientBuckets> buckets_;  // null where all gradients are summed after backward
};

}  // namespace attend
