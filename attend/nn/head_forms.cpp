#include "attend/nn/head_forms.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// Every second head, from 0 or 1.
Tensor alternate(const Tensor& x, int64_t first) { return x.slice(1, first, c10::nullopt, 2); }

// (mean square + epsilon)^-1/2 of the last axis.
Tensor inverse_size(const Tensor& x, double epsilon) {
  return (x.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt();
}

}  // namespace

HeadDifference::HeadDifference(int64_t head_depth, int64_t layer, double epsilon)
    : first_factor_(0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer))), epsilon_(epsilon) {
  if (head_depth < 1 || layer < 0)
    fail(
        "[head difference] heads have depth {} in layer {}; the depth must be 1 or more, the "
        "layer 0 or more",
        head_depth, layer);
  const auto vector = [&](const char* name) {
    return register_parameter(name, torch::randn({head_depth}) * 0.1);
  };
  a_ = vector("factor_a");
  b_ = vector("factor_b");
  e_ = vector("factor_e");
  f_ = vector("factor_f");
  norm_ = register_parameter("norm", torch::ones({2 * head_depth}));
}

Tensor HeadDifference::factor() const {
  return at::exp((a_ * b_).sum()) - at::exp((e_ * f_).sum()) + first_factor_;
}

Tensor HeadDifference::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                              const AttentionSpec& spec, const Tensor& output,
                              const Pass& pass) const {
  const auto difference = [&](const Tensor& x) {
    return alternate(x, 0) - factor() * alternate(x, 1);
  };
  const Tensor values = value.repeat_interleave(2, 1);
  const auto [contexts, lse] = pass.unseen().attention(query, key, values, spec);
  if (pass.watch == nullptr) return difference(contexts);
  const Tensor weights = difference(attention_weights(query, key, lse, spec));
  return pass.apply_weights(weights, value, spec, output);
}

Tensor HeadDifference::norm_factors(const Tensor& contexts) const {
  return inverse_size(contexts, epsilon_) * norm_ * (1 - first_factor_);
}

LatentHeads::LatentHeads(const LatentSizes& sizes, double epsilon)
    : sizes_(sizes), epsilon_(epsilon) {
  if (sizes.source_depth < 1 || sizes.heads < 1 || sizes.head_depth < 1 || sizes.latent_depth < 1 ||
      sizes.rotary_depth < 0 || sizes.rotary_depth % 2 != 0)
    fail(
        "[latent heads] {} heads of depth {} from vectors of {} and {} rotated numbers; each must "
        "be 1 or more, the last even and 0 or more",
        sizes.heads, sizes.head_depth, sizes.latent_depth, sizes.rotary_depth);
  compress_ = register_module(
      "compress", xavier_linear(sizes.source_depth, sizes.latent_depth + sizes.rotary_depth));
  norm_ = register_parameter("norm", torch::ones({sizes.latent_depth}));
  const int64_t width = sizes.heads * sizes.head_depth;
  // Without biases, so that the absorbed form needs only products.
  key_ = register_module("key", xavier_linear(sizes.latent_depth, width, /*has_bias=*/false));
  value_ = register_module("value", xavier_linear(sizes.latent_depth, width, /*has_bias=*/false));
}

Tensor LatentHeads::compressed(const Tensor& source, const Pass& pass) {
  const Tensor both = compress_->forward(source, pass);
  const Tensor latent = both.narrow(2, 0, sizes_.latent_depth);
  const Tensor factors = pass.watched(WatchedVectors::gate, inverse_size(latent, epsilon_) * norm_);
  const Tensor shared = both.narrow(2, sizes_.latent_depth, sizes_.rotary_depth);
  return at::cat({latent * factors, shared}, 2).unsqueeze(1);
}

LatentHeads::KeysAndValues LatentHeads::expanded(const Tensor& kept, const Pass& pass) const {
  const Tensor latent = kept.select(1, 0).narrow(2, 0, sizes_.latent_depth);
  const auto heads = [&](const Linear& map) {
    return linear(latent, map->weight, {}, pass)
        .unflatten(2, {sizes_.heads, sizes_.head_depth})
        .transpose(1, 2);
  };
  const Tensor shared =
      kept.narrow(3, sizes_.latent_depth, sizes_.rotary_depth).expand({-1, sizes_.heads, -1, -1});
  return {at::cat({heads(key_), shared}, 3), heads(value_)};
}

Tensor LatentHeads::by_head(const Tensor& map) const {
  return map.view({sizes_.heads, sizes_.head_depth, sizes_.latent_depth});
}

Tensor LatentHeads::absorbed_queries(const Tensor& query) const {
  const Tensor own = query.narrow(3, 0, sizes_.head_depth);
  const Tensor shared = query.narrow(3, sizes_.head_depth, sizes_.rotary_depth);
  return at::cat({at::matmul(own, by_head(key_->weight)), shared}, 3);
}

Tensor LatentHeads::absorbed_contexts(const Tensor& contexts) const {
  return at::matmul(contexts, by_head(value_->weight).transpose(1, 2));
}

// Per key and head, the expanded form makes a key and a value of 2 head_depth latent_depth
// products; the absorbed form has 2 (latent_depth - head_depth) more products per query.
bool LatentHeads::absorbs(int64_t queries) const {
  return queries * (sizes_.latent_depth - sizes_.head_depth) <
         sizes_.head_depth * sizes_.latent_depth;
}

}  // namespace attend
