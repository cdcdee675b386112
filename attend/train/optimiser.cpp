#include "attend/train/optimiser.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/hash.h"

namespace attend {
namespace {

using at::Tensor;

// Runs a call of the world, which requires the CPU, on a vector of any device.
template <class Call>
void on_cpu(const Communicator& world, const Tensor& vector, Call call) {
  if (world.size() == 1) return;
  Tensor own = vector.detach().cpu();
  call(own);
  if (!vector.is_cpu()) vector.copy_(own);
}

// Biases and scales of norms (one axis) do not decay, as this gains nothing. Neither do parameters
// without a gradient.
Tensor decay_mask(const ModulePtr& module) {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : module->parameters()) {
    const bool decays = parameter.requires_grad() && parameter.dim() > 1;
    parts.push_back(at::full({parameter.numel()}, decays ? 1.0 : 0.0,
                             parameter.options().requires_grad(false).device(at::kCPU)));
  }
  return at::cat(parts);
}

std::vector<Tensor> alike(const std::vector<Tensor>& vectors) {
  std::vector<Tensor> zeros;
  zeros.reserve(vectors.size());
  for (const Tensor& vector : vectors) zeros.push_back(at::zeros_like(vector));
  return zeros;
}

// kernels::adam_step for other devices than the CPU.
void composed_step(const kernels::Adam& step, const Tensor& gradient, const Tensor& decayed,
                   const Tensor& first, const Tensor& second, const Tensor& weights,
                   const Tensor& average) {
  const Tensor g = gradient * step.scale;
  first.lerp_(g, step.first_share);
  second.lerp_(g * g, step.second_share);
  weights.addcmul_(weights, decayed, -step.decay);
  weights.addcdiv_(first, second.sqrt().div_(step.root).add_(step.epsilon), -step.rate);
  average.lerp_(weights, step.average_share);
}

}  // namespace

Optimiser::Optimiser(const TrainConfig& config, const std::vector<ModulePtr>& replicas,
                     const ModulePtr& averaged, Communicator& world)
    : world_(world),
      clip_norm_(config.clip_norm),
      weight_decay_(config.weight_decay),
      l2_(config.l2),
      weight_average_(config.weight_average),
      beta1_(config.beta1),
      beta2_(config.beta2),
      epsilon_(config.epsilon),
      weights_(std::make_unique<FlatParameters>(replicas[0])) {
  gradients_.reserve(replicas.size());
  for (const ModulePtr& replica : replicas) {
    weights_->share_with(replica);
    gradients_.push_back(weights_->give_gradients(replica));
  }
  average_ = std::make_unique<FlatParameters>(replicas[0]);
  average_->share_with(averaged);
  torch::NoGradGuard no_gradient;
  for (std::vector<Tensor>* vectors : {&decayed_, &first_, &second_})
    *vectors = alike(weights_->values());
  weights_->scatter(decay_mask(replicas[0]), decayed_);
  const auto count = static_cast<int64_t>(replicas.size());
  for (size_t v = 0; v < decayed_.size(); ++v) {
    const int64_t all = decayed_[v].numel(), length = (all + count - 1) / count;
    for (int64_t begin = 0; begin < all; begin += length)
      slices_.push_back({v, begin, std::min(length, all - begin)});
  }
  // With shared sequences, calls of the world within backward would interfere.
  if (world.size() == 1 || config.sequence_parallel) return;
  std::vector<Tensor> vectors;
  for (const auto& replica_gradients : gradients_) {
    if (replica_gradients.size() > 1 || !replica_gradients[0].is_cpu()) return;
    vectors.push_back(replica_gradients[0]);
  }
  buckets_ = std::make_unique<GradientBuckets>(world, replicas, std::move(vectors));
}

void Optimiser::begin_last_backward(int64_t replica) {
  if (buckets_) buckets_->begin_last_backward(replica);
}

void Optimiser::clear_gradient(int64_t replica) {
  for (const Tensor& vector : gradients_[static_cast<size_t>(replica)]) vector.zero_();
}

void Optimiser::broadcast() {
  torch::NoGradGuard no_gradient;
  const std::vector<Tensor>* const all[] = {&weights_->values(), &average_->values(), &first_,
                                            &second_};
  for (const auto* vectors : all)
    for (const Tensor& vector : *vectors)
      on_cpu(world_, vector, [&](Tensor& own) { world_.broadcast(own); });
}

bool Optimiser::synchronise() {
  if (world_.size() == 1) return false;
  Fnv1a hash;
  for (const FlatParameters* each : {weights_.get(), average_.get()})
    for (const Tensor& vector : each->values()) {
      const Tensor own = vector.detach().cpu();
      const auto* numbers = own.data_ptr<float>();
      for (int64_t i = 0; i < own.numel(); ++i) hash.add(std::bit_cast<uint32_t>(numbers[i]));
    }
  if (all_alike(world_, hash.value())) return false;
  broadcast();
  return true;
}

void Optimiser::sum_replicas(WorkerThreads& threads) {
  threads.run(std::ssize(slices_), [&](int64_t s) {
    torch::NoGradGuard no_gradient;
    const Slice& slice = slices_[static_cast<size_t>(s)];
    const Tensor sum = slice.of(gradients_[0]);
    for (size_t r = 1; r < gradients_.size(); ++r) sum.add_(slice.of(gradients_[r]));
  });
}

double Optimiser::sum_gradients(WorkerThreads& threads) {
  if (buckets_) {
    buckets_->sum(threads);
  } else {
    sum_replicas(threads);
    for (const Tensor& vector : gradients_[0])
      on_cpu(world_, vector, [&](Tensor& own) { world_.sum(own); });
  }
  std::vector<double> squares(slices_.size());
  threads.run(std::ssize(slices_), [&](int64_t slice) {
    torch::NoGradGuard no_gradient;
    const auto s = static_cast<size_t>(slice);
    const Tensor gradient = slices_[s].of(gradients_[0]);
    // gradient of l2 / 2 |w|^2
    if (l2_ > 0) gradient.addcmul_(slices_[s].of(weights_->values()), slices_[s].of(decayed_), l2_);
    const auto norm = gradient.norm().item<double>();
    squares[s] = norm * norm;
  });
  return std::sqrt(std::reduce(squares.begin(), squares.end()));
}

void Optimiser::step(WorkerThreads& threads, double norm, double rate) {
  ++updates_;
  const auto count = static_cast<double>(updates_);
  // The decay is small at first, so the average forgets the random initial weights.
  const double decay = std::min(weight_average_, (1 + count) / (10 + count));
  kernels::Adam adam;
  adam.scale = static_cast<float>(std::min(1.0, clip_norm_ / std::max(norm, 1e-12)));
  adam.first_share = static_cast<float>(1 - beta1_);
  adam.second_share = static_cast<float>(1 - beta2_);
  adam.decay = static_cast<float>(rate * weight_decay_);
  adam.rate = static_cast<float>(rate / (1 - std::pow(beta1_, count)));
  adam.root = static_cast<float>(std::sqrt(1 - std::pow(beta2_, count)));
  adam.epsilon = static_cast<float>(epsilon_);
  adam.average_share = static_cast<float>(1 - decay);
  threads.run(static_cast<int64_t>(slices_.size()),
              [&](int64_t slice) { step_slice(slices_[static_cast<size_t>(slice)], adam); });
}

bool Optimiser::weights_finite() const {
  for (const Tensor& vector : weights_->values())
    if (!vector.isfinite().all().item<bool>()) return false;
  return true;
}

void Optimiser::step_slice(const Slice& slice, const kernels::Adam& adam) const {
  torch::NoGradGuard no_gradient;
  const Tensor gradient = slice.of(gradients_[0]), decayed = slice.of(decayed_);
  const Tensor first = slice.of(first_), second = slice.of(second_);
  const Tensor weights = slice.of(weights_->values()), average = slice.of(average_->values());
  if (!weights.is_cpu())
    return composed_step(adam, gradient, decayed, first, second, weights, average);
  kernels::adam_step(
      adam,
      {gradient.data_ptr<float>(), decayed.data_ptr<float>(), first.data_ptr<float>(),
       second.data_ptr<float>(), weights.data_ptr<float>(), average.data_ptr<float>()},
      slice.size);
}

void Optimiser::save(Checkpoint& checkpoint) const {
  checkpoint.weights = weights_->gathered(weights_->values());
  checkpoint.average = average_->gathered(average_->values());
  checkpoint.first_moment = weights_->gathered(first_);
  checkpoint.second_moment = weights_->gathered(second_);
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
  weights_->scatter(checkpoint.first_moment, first_);
  weights_->scatter(checkpoint.second_moment, second_);
}

}  // namespace attend
