#pragma once

#include <torch/torch.h>

#include <string>

#include "attend/ops/attention.h"

namespace attend {

// Depths of what an attention network compares.
struct AttentionSizes {
  int64_t query_depth = 0;
  int64_t key_depth = 0;
  int64_t attention_depth = 0;  // hidden units of the additive score
  int64_t keys = 0;             // positions of the location score
};

// Keys that many queries will read: mapped once.
struct AttentionMemory {
  at::Tensor keys;    // [B, S, A], mapped
  at::Tensor values;  // [B, S, Dv]
  at::Tensor mask;    // [B, 1, 1, S] bool: true is a key, false padding; undefined: no padding
};

// A score of the table with trainable parameters, over the keys of a memory.
class AttentionNetwork : public torch::nn::Module {
 public:
  // Error when `score` is no row of score_table(), or when it compares depths that differ.
  AttentionNetwork(const std::string& score, const AttentionSizes& sizes);

  // keys and values [B, S, D]; lengths [B] int64 says where padding begins.
  AttentionMemory prepare(const at::Tensor& keys, const at::Tensor& values,
                          const at::Tensor& lengths) const;

  // query [B, Dq] -> context [B, Dv] and lse [B].
  AttentionResult forward(const at::Tensor& query, const AttentionMemory& memory) const;

  // The weights [B, S] behind forward(query, memory).
  at::Tensor weights(const at::Tensor& query, const at::Tensor& lse,
                     const AttentionMemory& memory) const;

  // The score with the parameters as they are now.
  Score score() const;

 private:
  std::string score_name_;
};

}  // namespace attend
