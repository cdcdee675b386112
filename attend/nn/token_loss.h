#pragma once

#include <ATen/ATen.h>

#include "attend/nn/pass.h"

namespace attend {

// The map from vectors to logits over tokens.
struct TokenOutput {
  at::Tensor weight;     // [V, D]: may be the embedding (Press & Wolf 2017)
  at::Tensor bias = {};  // [V]; undefined: none

  at::Tensor logits(const at::Tensor& vectors) const;  // [..., D] -> [..., V]
};

// The cross-entropy of softmax(vectors W^T + b) against target, summed over the rows whose target
// is not `ignored`, in nats: the same as of the logits, of which only some rows exist at a time, so
// that memory does not grow with rows x tokens. `smoothing` spreads that much probability over the
// tokens from `first` on (Szegedy et al. 2016). vectors [N, D], target [N] int64. Differentiable in
// vectors, weight and bias; the gradients are computed with the loss, where they are recorded.
// Where they are to be differentiated again (create_graph), all logits exist at once. Error on
// shapes that do not fit.
at::Tensor token_loss(const at::Tensor& vectors, const TokenOutput& output,
                      const at::Tensor& target, const Pass& pass, double smoothing, int64_t ignored,
                      int64_t first = 0);

// The same with softmax over the target and `negatives` tokens alone, which are drawn evenly, one
// after another, from those from `first` on: for all rows together, but that a row takes none that
// is its target (Klenitskiy & Vasilev 2023). Error on a pass without a generator.
at::Tensor sampled_token_loss(const at::Tensor& vectors, const TokenOutput& output,
                              const at::Tensor& target, const Pass& pass, int64_t negatives,
                              double smoothing, int64_t ignored, int64_t first);

// The same as token_loss of logits [N, V].
at::Tensor smoothed_cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                  double smoothing, int64_t ignored, int64_t first = 0);

}  // namespace attend
