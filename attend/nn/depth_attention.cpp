#include "attend/nn/depth_attention.h"

#include "attend/base/error.h"

namespace attend {

using at::Tensor;

Tensor depth_keys(const Tensor& outputs) {
  return outputs * (outputs.square().mean(-1, /*keepdim=*/true) + 1e-6).rsqrt();
}

DepthAttention::DepthAttention(int64_t depth, int64_t sublayers, int64_t block) : block_(block) {
  if (depth < 1 || sublayers < 1 || block < 1)
    fail(
        "[depth attention] {} sublayers of depth {} in blocks of {}; each number must be 1 or more",
        sublayers, depth, block);
  queries_ = register_parameter("queries", torch::zeros({sublayers, depth}));
}

DepthAttention::Outputs::Outputs(const DepthAttention& reader, const Tensor& x) : reader_(reader) {
  keep(x);
}

void DepthAttention::Outputs::keep(const Tensor& sum) {
  sums_.push_back(sum);
  keys_.push_back(depth_keys(sum));
}

void DepthAttention::Outputs::add(const Tensor& output) {
  if (sublayers_++ % reader_.block_ == 0) {
    keep(output);
    return;
  }
  const Tensor sum = sums_.back() + output;
  sums_.pop_back();
  keys_.pop_back();
  keep(sum);
}

Tensor DepthAttention::Outputs::read(const Pass& pass) const {
  if (sublayers_ == 0) return sums_[0];
  const Tensor query = reader_.queries_[sublayers_ - 1];
  std::vector<Tensor> scores;
  scores.reserve(keys_.size());
  for (const Tensor& key : keys_) scores.push_back((key * query).sum(-1, /*keepdim=*/true));
  const Tensor weights = pass.watched(WatchedVectors::gate, at::cat(scores, -1).softmax(-1));
  Tensor mean = weights.narrow(-1, 0, 1) * sums_[0];
  for (size_t i = 1; i < sums_.size(); ++i)
    mean = mean + weights.narrow(-1, static_cast<int64_t>(i), 1) * sums_[i];
  return mean;
}

}  // namespace attend
