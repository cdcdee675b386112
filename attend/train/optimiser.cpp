#include "attend/train/optimiser.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

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

// Has the other processes' calls, which are for the CPU, done on a vector of any device.
template <class Call>
void on_cpu(const Communicator& world, const Tensor& vector, Call call) {
  if (world.size() == 1) return;
  Tensor own = vector.detach().cpu();
  call(own);
  if (!vector.is_cpu()) vector.copy_(own);
}

// Biases, and the scales of norms, have one axis: shrinking them gains nothing. A parameter without
// a gradient stays as it is.
Tensor decay_mask(const ModulePtr& module) {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : module->parameters()) {
    const bool decays = parameter.requires_grad() && parameter.dim() > 1;
    parts.push_back(at::full({parameter.numel()}, decays ? 1.0 : 0.0,
                             parameter.options().requires_grad(false).device(at::kCPU)));
  }
  return at::cat(parts);
}

}  // namespace

Optimiser::Optimiser(const TrainConfig& config, const std::vector<ModulePtr>& replicas,
                     const ModulePtr& averaged)
    : clip_norm_(config.clip_norm),
      weight_decay_(config.weight_decay),
      weight_average_(config.weight_average),
      adam_options_(adam_options(config)),
      weights_(std::make_unique<FlatParameters>(replicas[0])) {
  gradients_.reserve(replicas.size());
  for (const ModulePtr& replica : replicas) gradients_.push_back(weights_->share_with(replica));
  average_ = std::make_unique<FlatParameters>(replicas[0]);
  average_->share_with(averaged);
  std::vector<Tensor> decayed;
  for (const Tensor& vector : weights_->values()) decayed.push_back(at::empty_like(vector));
  weights_->scatter(decay_mask(replicas[0]), decayed);
  for (size_t v = 0; v < decayed.size(); ++v)
    add_slices(v, decayed[v], static_cast<int64_t>(replicas.size()));
}

void Optimiser::add_slices(size_t vector, const Tensor& decayed, int64_t count) {
  const int64_t all = decayed.numel(), length = (all + count - 1) / count;
  for (int64_t begin = 0; begin < all; begin += length) {
    const int64_t size = std::min(length, all - begin);
    Tensor weights = weights_->values()[vector].narrow(0, begin, size);
    weights.mutable_grad() = gradients_[0][vector].narrow(0, begin, size);
    auto adam = std::make_unique<torch::optim::Adam>(std::vector<Tensor>{weights}, adam_options_);
    // Adam makes its moments in its first step; with rate 0 and gradient 0 that changes nothing.
    adam->step();
    state_of(*adam).step(0);
    slices_.push_back({vector, begin, weights, average_->values()[vector].narrow(0, begin, size),
                       decayed.narrow(0, begin, size), std::move(adam)});
  }
}

void Optimiser::clear_gradient(int64_t replica) {
  for (const Tensor& vector : gradients_[static_cast<size_t>(replica)]) vector.zero_();
}

void Optimiser::broadcast(Communicator& world) {
  torch::NoGradGuard no_gradient;
  for (const FlatParameters* each : {weights_.get(), average_.get()})
    for (const Tensor& vector : each->values())
      on_cpu(world, vector, [&](Tensor& own) { world.broadcast(own); });
}

double Optimiser::sum_gradients(WorkerThreads& threads, Communicator& world) {
  const auto count = static_cast<int64_t>(slices_.size());
  threads.run(count, [&](int64_t s) {
    torch::NoGradGuard no_gradient;
    const Slice& slice = slices_[static_cast<size_t>(s)];
    const Tensor& sum = slice.weights.grad();
    for (size_t r = 1; r < gradients_.size(); ++r)
      sum.add_(gradients_[r][slice.vector].narrow(0, slice.begin, sum.numel()));
  });
  for (const Tensor& vector : gradients_[0])
    on_cpu(world, vector, [&](Tensor& own) { world.sum(own); });
  std::vector<double> squares(slices_.size());
  threads.run(count, [&](int64_t slice) {
    const auto s = static_cast<size_t>(slice);
    const auto norm = slices_[s].weights.grad().norm().item<double>();
    squares[s] = norm * norm;
  });
  return std::sqrt(std::reduce(squares.begin(), squares.end()));
}

void Optimiser::step(WorkerThreads& threads, double norm, double rate) {
  const double scale = std::min(1.0, clip_norm_ / std::max(norm, 1e-12));
  ++updates_;
  const auto count = static_cast<double>(updates_);
  // The average follows fast at first, so that it forgets the random start.
  const double decay = std::min(weight_average_, (1 + count) / (10 + count));
  threads.run(static_cast<int64_t>(slices_.size()), [&](int64_t slice) {
    step_slice(slices_[static_cast<size_t>(slice)], scale, weight_decay_, rate, decay);
  });
}

bool Optimiser::weights_finite() const {
  for (const Tensor& vector : weights_->values())
    if (!vector.isfinite().all().item<bool>()) return false;
  return true;
}

void Optimiser::step_slice(Slice& slice, double scale, double decay, double rate,
                           double average_decay) {
  torch::NoGradGuard no_gradient;
  if (scale < 1) slice.weights.mutable_grad().mul_(scale);
  if (decay > 0) slice.weights.addcmul_(slice.weights, slice.decayed, -rate * decay);
  auto& group = slice.adam->param_groups()[0];
  static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate);
  slice.adam->step();
  slice.average.lerp_(slice.weights, 1 - average_decay);
}

template <class F>
std::vector<Tensor> Optimiser::joined(F pick) const {
  std::vector<std::vector<Tensor>> parts(weights_->values().size());
  for (const Slice& slice : slices_) parts[slice.vector].push_back(pick(slice));
  std::vector<Tensor> vectors;
  for (const auto& of_device : parts) vectors.push_back(at::cat(of_device));
  return vectors;
}

void Optimiser::save(Checkpoint& checkpoint) const {
  checkpoint.weights = weights_->gathered(weights_->values());
  checkpoint.average = average_->gathered(average_->values());
  checkpoint.first_moment = weights_->gathered(
      joined([](const Slice& slice) { return state_of(*slice.adam).exp_avg(); }));
  checkpoint.second_moment = weights_->gathered(
      joined([](const Slice& slice) { return state_of(*slice.adam).exp_avg_sq(); }));
  checkpoint.updates = updates_;
}

void Optimiser::restore(const Checkpoint& checkpoint, const std::string& path) {
  int64_t all = 0;
  for (const Tensor& vector : weights_->values()) all += vector.numel();
  for (const Tensor& each : {checkpoint.weights, checkpoint.average, checkpoint.first_moment,
                             checkpoint.second_moment}) {
    if (each.numel() != all)
      fail("{}: holds {} parameters, the model has {}; train into a new folder", path, each.numel(),
           all);
  }
  torch::NoGradGuard no_gradient;
  weights_->scatter(checkpoint.weights, weights_->values());
  average_->scatter(checkpoint.average, average_->values());
  updates_ = checkpoint.updates;
  std::vector<Tensor> first, second;
  for (const Tensor& vector : weights_->values()) {
    first.push_back(at::empty_like(vector));
    second.push_back(at::empty_like(vector));
  }
  weights_->scatter(checkpoint.first_moment, first);
  weights_->scatter(checkpoint.second_moment, second);
  for (const Slice& slice : slices_) {
    auto& state = state_of(*slice.adam);
    const int64_t size = state.exp_avg().numel();
    state.exp_avg().copy_(first[slice.vector].narrow(0, slice.begin, size));
    state.exp_avg_sq().copy_(second[slice.vector].narrow(0, slice.begin, size));
    state.step(updates_);
  }
}

}  // namespace attend
