#include <algorithm>
#include <tuple>

#include "attend/base/hash.h"
#include "attend/decode/candidates-inl.h"

namespace attend::internal {
namespace {

using at::Tensor;

// One step of the generator from any state.
uint64_t mixed(uint64_t state) { return split_mix(state + split_mix_step); }

}  // namespace

NextTokens drawn(const Tensor& log_probabilities, const std::vector<double>& uniforms,
                 const Sampling& sampling) {
  Tensor values = log_probabilities, tokens;
  if (sampling.top_k > 0)
    std::tie(values, tokens) = values.topk(std::min(sampling.top_k, values.size(1)), 1);
  else if (sampling.top_p < 1)
    std::tie(values, tokens) = values.sort(1, /*descending=*/true);
  Tensor probabilities = (values.to(at::kDouble) / sampling.temperature).softmax(1);
  Tensor below = probabilities.cumsum(1);
  if (sampling.top_p < 1) {
    // Keeps a token while the tokens before it have less than top_p.
    probabilities = probabilities * (below - probabilities < sampling.top_p);
    below = probabilities.cumsum(1);
  }
  const Tensor chance =
      at::tensor(at::ArrayRef<double>(uniforms), at::kDouble).to(below.device()).unsqueeze(1);
  const Tensor total = below.narrow(1, below.size(1) - 1, 1);
  // `chance` is at most 1 - 2^-48, so that some token is above the product despite rounding.
  const Tensor place = at::searchsorted(below, chance * total, /*out_int32=*/false, /*right=*/true)
                           .clamp_max(below.size(1) - 1);
  const Tensor chosen = tokens.defined() ? tokens.gather(1, place) : place;
  return {log_probabilities.gather(1, chosen).to(at::kCPU, at::kDouble), chosen.to(at::kCPU), {}};
}

double uniform(const Sampling& sampling, uint64_t stream, int64_t answer, int64_t step) {
  uint64_t bits = mixed(mixed(sampling.seed) ^ stream);
  bits = mixed(bits ^ static_cast<uint64_t>(answer));
  bits = mixed(bits ^ static_cast<uint64_t>(step));
  return static_cast<double>(bits >> 16) * 0x1p-48;
}

}  // namespace attend::internal
