#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "attend/nn/learned_attention.h"
#include "attend/nn/pass.h"

namespace attend {

// Keys that many queries will read: mapped once.
struct AttentionMemory {
  at::Tensor keys;     // [B, S, A], mapped
  at::Tensor values;   // [B, S, Dv]
  at::Tensor lengths;  // [B] int64: where padding begins; undefined: there is none
};

// What one query got from a memory.
struct AttentionStep {
  at::Tensor context;               // [B, Dv]
  at::Tensor lse;                   // [B]
  std::vector<at::Tensor> carried;  // for the next query; axis 0 is the batch
  at::Tensor query;                 // [B, 1, A], mapped, and the spec it went with: what weights
  AttentionSpec spec;               // and scores are computed from
};

// A trained mechanism that takes its queries one by one, such as the states of a decoder.
class StepAttention : public LearnedAttention {
 public:
  // Error as LearnedAttention, and on scores of features (linear attention), which remember no
  // keys.
  StepAttention(const AttentionChoices& choices, const AttentionSizes& sizes);

  // keys and values [B, S, D]; lengths [B] int64 says where padding begins.
  AttentionMemory prepare(const at::Tensor& keys, const at::Tensor& values,
                          const at::Tensor& lengths) const;

  // The next query [B, Dq]. `carried` is what the query before returned, empty for the first: the
  // position, where scope or bias depend on it, and the weights before, where the mechanism looks
  // back. A mechanism that draws does so only with a generator.
  AttentionStep forward(const at::Tensor& query, const AttentionMemory& memory,
                        const std::vector<at::Tensor>& carried = {}, const Pass& pass = {}) const;

  // The weights [B, S] behind a step, and its scores with their bias, -inf outside the scope.
  at::Tensor weights(const AttentionStep& step, const AttentionMemory& memory,
                     const Pass& pass = {}) const;
  at::Tensor scores(const AttentionStep& step, const AttentionMemory& memory) const;
};

}  // namespace attend
