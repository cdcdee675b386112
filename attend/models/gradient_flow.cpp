#include "attend/models/gradient_flow.h"

#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "attend/base/error.h"
#include "attend/data/batches.h"
#include "attend/models/model_folder.h"
#include "attend/models/pair_model.h"
#include "attend/models/seq2seq.h"

namespace attend {
namespace {

using at::Tensor;

constexpr size_t pairs_per_batch = 64;

// Batches of sources with equal lengths: an unrolled recurrence has no padding.
std::vector<std::vector<int64_t>> batches_of_one_length(const std::vector<EncodedPair>& pairs) {
  std::map<size_t, std::vector<int64_t>> by_length;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (!pairs[i].source.empty())
      by_length[pairs[i].source.size()].push_back(static_cast<int64_t>(i));
  std::vector<std::vector<int64_t>> batches;
  for (const auto& [length, indices] : by_length) {
    for (size_t begin = 0; begin < indices.size(); begin += pairs_per_batch) {
      const size_t end = std::min(begin + pairs_per_batch, indices.size());
      batches.emplace_back(indices.begin() + static_cast<int64_t>(begin),
                           indices.begin() + static_cast<int64_t>(end));
    }
  }
  return batches;
}

}  // namespace

GradientFlow gradient_flow(Seq2Seq& network, const std::vector<EncodedPair>& pairs) {
  std::vector<double> logarithms;
  GradientFlow flow;
  for (const auto& indices : batches_of_one_length(pairs)) {
    const Batch batch = make_batch(pairs, indices);
    std::vector<Tensor> states;
    const Tensor loss =
        sequence_loss(network.logits_by_states(batch, states), batch.target, /*smoothing=*/0);
    // The loss is a sum over pairs, so a pair's states get the gradient of its own loss.
    const auto gradients = torch::autograd::grad({loss}, states);
    const size_t length = states.size();
    if (length > logarithms.size()) {
      logarithms.resize(length, 0);
      flow.states.resize(length, 0);
    }
    for (size_t i = 0; i < length; ++i) {
      // An underflowing gradient counts as the smallest positive number.
      const Tensor norms =
          gradients[i].to(at::kDouble).norm(2, 1).clamp_min(std::numeric_limits<float>::min());
      logarithms[length - 1 - i] += norms.log().sum().item<double>();
      flow.states[length - 1 - i] += norms.numel();
    }
  }
  flow.norms.reserve(logarithms.size());
  for (size_t i = 0; i < logarithms.size(); ++i)
    flow.norms.push_back(std::exp(logarithms[i] / static_cast<double>(flow.states[i])));
  return flow;
}

GradientFlow gradient_flow(const std::string& folder, bool trained,
                           const std::vector<Example>& examples) {
  torch::manual_seed(1);
  const PairModel model = trained ? load_pair_model(folder) : load_description(folder);
  auto* network = dynamic_cast<Seq2Seq*>(model.network.get());
  if (!network)
    fail("{}: has no recurrent encoder with states to measure; give a seq2seq model", folder);
  network->eval();
  return gradient_flow(*network, model.encode(examples));
}

}  // namespace attend
