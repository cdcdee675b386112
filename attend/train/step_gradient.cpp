#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "attend/nn/linear.h"
#include "attend/train/step_gradient-inl.h"

namespace attend::internal {
namespace {

using at::Tensor;

int64_t target_tokens(const std::vector<std::vector<EncodedPair>>& batches) {
  int64_t tokens = 0;
  for (const auto& batch : batches)
    for (const EncodedPair& pair : batch) tokens += pair.target_length();
  return tokens;
}

// bfloat16 is automatic only if the processors of all processes support it.
bool takes_bfloat16_products(const TrainConfig& config, Communicator& world) {
  const double multiplying = sum(world, multiplies_bfloat16() ? 1 : 0);
  return config.precision == Precision::bfloat16 ||
         (config.precision == Precision::automatic &&
          multiplying == static_cast<double>(world.size()));
}

}  // namespace

std::string not_finite(const torch::nn::Module& module) {
  const auto finite = [](const Tensor& tensor) { return tensor.isfinite().all().item<bool>(); };
  const auto parameters = module.named_parameters();
  for (const auto& item : parameters)
    if (!finite(item.value())) return "the weights " + item.key();
  for (const auto& item : parameters)
    if (!finite(item.value().grad())) return "the gradient of " + item.key();
  return "the loss";
}

StepGradients::StepGradients(const TrainConfig& config, const TrainTask& task, Communicator& world,
                             Optimiser& optimiser)
    : config_(config),
      task_(task),
      world_(world),
      optimiser_(optimiser),
      bfloat16_products_(takes_bfloat16_products(config, world)) {}

StepGradient StepGradients::compute(const std::vector<std::vector<EncodedPair>>& batches,
                                    int64_t step, WorkerThreads& threads) {
  const int64_t tokens = target_tokens(batches);
  std::vector<double> objectives(static_cast<size_t>(config_.replicas));
  threads.run(config_.replicas, [&](int64_t replica) {
    objectives[static_cast<size_t>(replica)] = compute_share(batches, step, replica, tokens);
  });
  const double own_norm = optimiser_.sum_gradients(threads);
  // All use the norm of rank 0, because different processors may sum in different orders.
  const std::vector<double> sums =
      sum(world_, std::vector{std::reduce(objectives.begin(), objectives.end()),
                              world_.leads() ? own_norm : 0});
  return {sums[0], sums[1], tokens};
}

// The share of a replica: every n-th pair for n replicas in all processes, so that all have the
// same mix of lengths. If processes share sequences, all pairs.
double StepGradients::compute_share(const std::vector<std::vector<EncodedPair>>& batches,
                                    int64_t step, int64_t replica, int64_t tokens) {
  optimiser_.clear_gradient(replica);
  const bool by_pairs = !config_.sequence_parallel;
  const int64_t first = by_pairs ? world_.rank() * config_.replicas + replica : 0;
  const int64_t all = by_pairs ? world_.size() * config_.replicas : 1;
  Pass pass{
      .generator = at::make_generator<at::CPUGeneratorImpl>(noise_seed(config_.seed, step, first)),
      .bfloat16 = bfloat16_products_,
      .world = by_pairs ? nullptr : &world_};
  const auto last = std::find_if(batches.rbegin(), batches.rend(),
                                 [&](const auto& batch) { return std::ssize(batch) > first; });
  double sum = 0;
  for (const auto& batch : batches) {
    std::vector<int64_t> share;
    share.reserve(batch.size());
    for (auto i = first; i < static_cast<int64_t>(batch.size()); i += all) share.push_back(i);
    if (share.empty()) continue;
    const Batch shared = make_batch(batch, share);
    std::vector<Tensor> penalties;
    pass.penalties = &penalties;
    Tensor objective = task_.objective(replica, shared, pass);
    for (const Tensor& each : penalties)
      objective = objective + each.to(objective.device()) * shared.target_lengths.sum();
    if (&batch == &*last) optimiser_.begin_last_backward(replica);
    (objective / static_cast<double>(tokens)).backward();
    sum += objective.item<double>();
  }
  return sum;
}

}  // namespace attend::internal
