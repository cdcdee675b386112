#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "attend/nn/learned_attention.h"
#include "attend/nn/pass.h"

namespace attend {

// Keys for many queries, mapped once.
struct AttentionMemory {
  at::Tensor keys;     // [B, S, A], mapped
  at::Tensor values;   // [B, S, Dv]
  at::Tensor lengths;  // [B] int64, without padding; undefined: no padding
};

// Result of one query.
struct AttentionStep {
  at::Tensor context;               // [B, Dv]
  at::Tensor lse;                   // [B]
  std::vector<at::Tensor> carried;  // state for the next query; axis 0 is the batch
  at::Tensor query;                 // [B, 1, A], mapped; used by weights() and scores()
  AttentionSpec spec;               // spec of the query; used by weights() and scores()
};

// A trained mechanism that takes its queries one at a time, such as the states of a decoder.
class StepAttention : public LearnedAttention {
 public:
  // Error as LearnedAttention, and for scores of features (linear attention), which do not store
  // keys.
  StepAttention(const AttentionChoices& choices, const AttentionSizes& sizes);

  // keys and values [B, S, D]; lengths [B] int64, without padding.
  AttentionMemory prepare(const at::Tensor& keys, const at::Tensor& values,
                          const at::Tensor& lengths) const;

  // Attends with the next query [B, Dq]. `carried` is AttentionStep::carried of the previous query;
  // empty for the first. It holds the position if scope or bias depend on it, and the previous
  // weights if the mechanism uses them. Draws only with a generator.
  AttentionStep forward(const at::Tensor& query, const AttentionMemory& memory,
                        const std::vector<at::Tensor>& carried = {}, const Pass& pass = {}) const;

  // The weights [B, S] of a step, and its scores with bias, -inf outside the scope.
  at::Tensor weights(const AttentionStep& step, const AttentionMemory& memory,
                     const Pass& pass = {}) const;
  at::Tensor scores(const AttentionStep& step, const AttentionMemory& memory) const;
};

}  // namespace attend
