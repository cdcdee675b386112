#pragma once

#include <ATen/ATen.h>

#include "attend/nn/pass.h"

namespace attend {

// The map from vectors to logits over tokens.
struct TokenOutput {
  at::Tensor weight;     // [V, D]; may be the embedding (Press & Wolf 2017)
  at::Tensor bias = {};  // [V]; undefined: none

  at::Tensor logits(const at::Tensor& vectors) const;  // [..., D] -> [..., V]
};

// Cross-entropy of softmax(vectors W^T + b) against target in nats, summed over the rows with a
// target other than `ignored`. Logits exist only for a chunk of rows at a time, so memory does not
// grow with rows x tokens. `smoothing` is the probability spread over the tokens from `first` on
// (Szegedy et al. 2016). vectors [N, D], target [N] int64. Differentiable in vectors, weight and
// bias; if gradients are recorded, they are computed together with the loss. For second derivatives
// (create_graph), all logits exist at once. Error if shapes do not match.
at::Tensor token_loss(const at::Tensor& vectors, const TokenOutput& output,
                      const at::Tensor& target, const Pass& pass, double smoothing, int64_t ignored,
                      int64_t first = 0);

// As token_loss, with softmax over the target and `negatives` sampled tokens only. These are drawn
// uniformly with replacement from the tokens from `first` on, once for all rows. A row skips
// samples that equal its target (Klenitskiy & Vasilev 2023). Error if the pass lacks a generator.
at::Tensor sampled_token_loss(const at::Tensor& vectors, const TokenOutput& output,
                              const at::Tensor& target, const Pass& pass, int64_t negatives,
                              double smoothing, int64_t ignored, int64_t first);

// As token_loss, for given logits [N, V].
at::Tensor smoothed_cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                  double smoothing, int64_t ignored, int64_t first = 0);

}  // namespace attend
