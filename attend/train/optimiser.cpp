#include "attend/train/optimiser.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

torch::optim::AdamParamState& state_of(torch::optim::Adam& adam) {
  return static_cast<torch::optim::AdamParamState&>(*adam.state().begin()->second);
}

torch::optim::AdamOptions adam_options(const TrainConfig& config) {
  return torch::optim::AdamOptions(0.0).betas({config.beta1, config.beta2}).eps(config.epsilon);
}

// Biases, and the scales of norms, have one axis: shrinking them gains nothing. A parameter without
// a gradient stays as it is.
Tensor decay_mask(const ModulePtr& module) {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : module->parameters()) {
    const bool decays = parameter.requires_grad() && parameter.dim() > 1;
    parts.push_back(at::full({parameter.numel()}, decays ? 1.0 : 0.0,
                             parameter.options().requires_grad(false)));
  }
  return at::cat(parts);
}

}  // namespace

Optimiser::Optimiser(const TrainConfig& config, const std::vector<ModulePtr>& replicas,
                     const ModulePtr& averaged)
    : clip_norm_(config.clip_norm),
      weight_decay_(config.weight_decay),
      weight_average_(config.weight_average),
      weights_(std::make_unique<FlatParameters>(replicas[0])) {
  gradients_.reserve(replicas.size());
  for (const ModulePtr& replica : replicas) gradients_.push_back(weights_->share_with(replica));
  FlatParameters average(replicas[0]);
  average.share_with(averaged);
  average_ = average.values();
  const Tensor decayed = decay_mask(replicas[0]);
  const auto count = static_cast<int64_t>(replicas.size());
  const int64_t length = (average_.numel() + count - 1) / count;
  for (int64_t begin = 0; begin < average_.numel(); begin += length) {
    const int64_t size = std::min(length, average_.numel() - begin);
    Tensor slice = weights_->values().narrow(0, begin, size);
    slice.mutable_grad() = gradients_[0].narrow(0, begin, size);
    slices_.push_back(slice);
    average_slices_.push_back(average_.narrow(0, begin, size));
    decayed_slices_.push_back(decayed.narrow(0, begin, size));
    adam_.push_back(
        std::make_unique<torch::optim::Adam>(std::vector<Tensor>{slice}, adam_options(config)));
    // Adam makes its moments in its first step; with rate 0 and gradient 0 that changes nothing.
    adam_.back()->step();
    state_of(*adam_.back()).step(0);
  }
}

void Optimiser::clear_gradient(int64_t replica) {
  gradients_[static_cast<size_t>(replica)].zero_();
}

void Optimiser::broadcast(Communicator& world) {
  torch::NoGradGuard no_gradient;
  Tensor weights = weights_->values();
  world.broadcast(weights);
  world.broadcast(average_);
}

double Optimiser::sum_gradients(WorkerThreads& threads, Communicator& world) {
  const auto count = static_cast<int64_t>(slices_.size());
  threads.run(count, [&](int64_t slice) {
    torch::NoGradGuard no_gradient;
    const Tensor& sum = slices_[static_cast<size_t>(slice)].grad();
    const int64_t begin = sum.storage_offset();
    for (size_t r = 1; r < gradients_.size(); ++r)
      sum.add_(gradients_[r].narrow(0, begin, sum.numel()));
  });
  world.sum(gradients_[0]);
  std::vector<double> squares(slices_.size());
  threads.run(count, [&](int64_t slice) {
    const auto norm = slices_[static_cast<size_t>(slice)].grad().norm().item<double>();
    squares[static_cast<size_t>(slice)] = norm * norm;
  });
  return std::sqrt(std::reduce(squares.begin(), squares.end()));
}

void Optimiser::step(WorkerThreads& threads, double norm, double rate) {
  const double scale = std::min(1.0, clip_norm_ / std::max(norm, 1e-12));
  ++updates_;
  const auto count = static_cast<double>(updates_);
  // The average follows fast at first, so that it forgets the random start.
  const double decay = std::min(weight_average_, (1 + count) / (10 + count));
  threads.run(static_cast<int64_t>(slices_.size()),
              [&](int64_t slice) { step_slice(static_cast<size_t>(slice), scale, rate, decay); });
}

bool Optimiser::weights_finite() const { return weights_->values().isfinite().all().item<bool>(); }

void Optimiser::step_slice(size_t slice, double scale, double rate, double average_decay) {
  torch::NoGradGuard no_gradient;
  if (scale < 1) slices_[slice].mutable_grad().mul_(scale);
  if (weight_decay_ > 0)
    slices_[slice].addcmul_(slices_[slice], decayed_slices_[slice], -rate * weight_decay_);
  auto& group = adam_[slice]->param_groups()[0];
  static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate);
  adam_[slice]->step();
  average_slices_[slice].lerp_(slices_[slice], 1 - average_decay);
}

void Optimiser::save(Checkpoint& checkpoint) const {
  std::vector<Tensor> first, second;
  for (const auto& adam : adam_) {
    first.push_back(state_of(*adam).exp_avg());
    second.push_back(state_of(*adam).exp_avg_sq());
  }
  checkpoint.weights = weights_->values();
  checkpoint.average = average_;
  checkpoint.first_moment = at::cat(first);
  checkpoint.second_moment = at::cat(second);
  checkpoint.updates = updates_;
}

void Optimiser::restore(const Checkpoint& checkpoint, const std::string& path) {
  for (const Tensor& each : {checkpoint.weights, checkpoint.average, checkpoint.first_moment,
                             checkpoint.second_moment}) {
    if (each.numel() != average_.numel())
      fail("{}: holds {} parameters, the model has {}; train into a new folder", path, each.numel(),
           average_.numel());
  }
  torch::NoGradGuard no_gradient;
  weights_->values().copy_(checkpoint.weights);
  average_.copy_(checkpoint.average);
  updates_ = checkpoint.updates;
  int64_t begin = 0;
  for (const auto& adam : adam_) {
    auto& state = state_of(*adam);
    const int64_t size = state.exp_avg().numel();
    state.exp_avg().copy_(checkpoint.first_moment.narrow(0, begin, size));
    state.exp_avg_sq().copy_(checkpoint.second_moment.narrow(0, begin, size));
    state.step(updates_);
    begin += size;
  }
}

}  // namespace attend
