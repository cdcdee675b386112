#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>

#include "attend/base/error.h"
#include "attend/ops/composed-inl.h"
#include "attend/ops/fused-inl.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/linear-inl.h"
#include "attend/ops/paths-inl.h"

namespace attend {
namespace {

using at::Tensor;

bool is_differentiated(const Lowered& lowered, const Tensor& lse) {
  const auto wants = [](const Tensor& x) { return x.defined() && x.requires_grad(); };
  return at::GradMode::is_enabled() &&
         (wants(lse) || std::any_of(lowered.parts.begin(), lowered.parts.end(), wants));
}

void check_path(Path path, const BackendChoice& fused) {
  if (path == Path::fused && !fused.obstacle.empty())
    fail("[attention] path is fused, but {}; take automatic or composed", fused.obstacle);
}

}  // namespace

AttentionResult attention_at_once(const Lowered& lowered, Path path) {
  const Parts& parts = lowered.parts;
  const auto& spec = lowered.spec;
  const bool linear = spec->normaliser->running_sums;
  const BackendChoice fused =
      linear ? BackendChoice{nullptr, not_running_sums_reason(*spec)} : fused_backend(parts, *spec);
  check_path(path, fused);
  if (path == Path::composed || !fused.obstacle.empty()) return composed_attention(parts, *spec);
  return linear ? linear_attention(parts, *spec) : fused_attention(*fused.backend, parts, spec);
}

const Backend* weights_backend(const Lowered& lowered, const Tensor& lse, Path path) {
  if (path == Path::composed) return nullptr;
  const BackendChoice fused =
      is_differentiated(lowered, lse)
          ? BackendChoice{nullptr, "weights are differentiated on the composed path"}
          : fused_backend(lowered.parts, *lowered.spec);
  check_path(path, fused);
  // Kernels require a pointer even if there is nothing to compute.
  return lse.numel() > 0 ? fused.backend : nullptr;
}

std::vector<int64_t> all_heads(const LoweredSpec& spec) {
  std::vector<int64_t> heads(static_cast<size_t>(spec.heads));
  std::iota(heads.begin(), heads.end(), 0);
  return heads;
}

Tensor weights_at_once(const Lowered& lowered, const Tensor& lse, Path path) {
  const LoweredSpec& spec = *lowered.spec;
  // Within attention() on the fused path, these weights may be differentiated.
  const Path taken = path == Path::fused ? Path::automatic : path;
  const Backend* backend = weights_backend(lowered, lse, taken);
  if (!backend) return composed_weights(lowered.parts, spec);
  const std::vector<int64_t> heads = all_heads(spec);
  return backend->weights(lowered.parts, spec, contiguous_numbers(lse), {heads, 0, spec.queries});
}

}  // namespace attend
