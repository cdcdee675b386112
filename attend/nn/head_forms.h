#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "attend/nn/linear.h"
#include "attend/nn/pass.h"

namespace attend {

// Pairs of heads with subtracted weights: differential attention (Ye et al. 2024, eq. 1-3).
// Heads 2h and 2h + 1 make one context of twice the depth, which is then normalised and scaled by 1
// - first_factor:
//   c = (softmax(q_2h k_2h) - factor softmax(q_(2h+1) k_(2h+1))) [v_2h; v_(2h+1)]
//   factor = exp(a . b) - exp(e . f) + first_factor, with trained vectors a, b, e and f
class HeadDifference : public torch::nn::Module {
 public:
  // head_depth: depth of a head of queries. `layer`, from 0, determines first_factor = 0.8 - 0.6
  // exp(-0.3 layer). `epsilon` is added to the mean square in the norm. Error if a number is out of
  // range.
  HeadDifference(int64_t head_depth, int64_t layer, double epsilon = 1e-5);

  // Contexts [B, heads / 2, Tq, 2 head_depth] of query [B, heads, Tq, head_depth], key [B, key
  // heads, Tk, head_depth] and value [B, key heads / 2, Tk, 2 head_depth], before the norm. A watch
  // sees the difference of the weights: a call with normaliser none. `output` as in
  // Pass::attention().
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const AttentionSpec& spec, const at::Tensor& output, const Pass& pass) const;

  // Factors of such contexts: the norm (Zhang & Sennrich 2019) and the scale.
  at::Tensor norm_factors(const at::Tensor& contexts) const;

  // One number, with gradients.
  at::Tensor factor() const;

 private:
  double first_factor_, epsilon_;
  at::Tensor a_, b_, e_, f_;  // [head_depth]
  at::Tensor norm_;           // [2 head_depth]
};

// Sizes of heads that make keys and values from a small vector per token: multi-head latent
// attention (DeepSeek-AI 2024, eq. 9-19, without compressed queries).
struct LatentSizes {
  int64_t source_depth = 0;
  int64_t heads = 1;
  int64_t head_depth = 0;    // depth of values, and of keys without the rotated part
  int64_t latent_depth = 0;  // numbers in the small vector
  int64_t rotary_depth = 0;  // numbers of the rotated key that all heads share; even, may be 0
};

// c = RMS norm(W_c x), k_h = [K_h c; rotated R x], v_h = V_h c. Decoding keeps only c and the
// rotated key. In the absorbed form, queries are multiplied by K_h and contexts by V_h, so keys and
// values of earlier tokens are never made.
class LatentHeads : public torch::nn::Module {
 public:
  // Error if a size is out of range.
  explicit LatentHeads(const LatentSizes& sizes, double epsilon = 1e-6);

  // Vectors to keep, [B, 1, T, latent_depth + rotary_depth], of source [B, T, source_depth]; the
  // shared key is not rotated yet.
  at::Tensor compressed(const at::Tensor& source, const Pass& pass);

  // Keys [B, heads, Tk, head_depth + rotary_depth] and values [B, heads, Tk, head_depth] of kept
  // vectors.
  struct KeysAndValues {
    at::Tensor keys, values;
  };
  KeysAndValues expanded(const at::Tensor& kept, const Pass& pass) const;

  // Queries [B, heads, Tq, latent_depth + rotary_depth] for the kept vectors as keys, of queries
  // [B, heads, Tq, head_depth + rotary_depth]. Dot products equal the products of
  // the expanded form.
  at::Tensor absorbed_queries(const at::Tensor& query) const;

  // Contexts [B, heads, Tq, head_depth] of contexts over the kept latent vectors.
  at::Tensor absorbed_contexts(const at::Tensor& contexts) const;

  // Whether the absorbed form takes fewer products for this number of queries.
  bool absorbs(int64_t queries) const;

  const LatentSizes& sizes() const { return sizes_; }

 private:
  at::Tensor by_head(const at::Tensor& map) const;  // [heads, head_depth, latent_depth]

  LatentSizes sizes_;
  double epsilon_;
  Linear compress_{nullptr}, key_{nullptr}, value_{nullptr};
  at::Tensor norm_;  // [latent_depth]
};

}  // namespace attend
