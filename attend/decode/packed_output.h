#pragma once

#include "attend/decode/decoding_state.h"
#include "attend/decode/weight_type.h"
#include "attend/kernels/packed_matrix.h"
#include "attend/nn/token_loss.h"

namespace attend {

// Whether a pass may use packed steps: no gradients are recorded and no watch is set.
bool may_step_packed(const Pass& pass);

// The output layer (vectors to tokens) with packed weights, and its results for a step.
class PackedOutput {
 public:
  // Whether the output is float32 on the CPU.
  static bool takes(const TokenOutput& output);

  PackedOutput(const TokenOutput& output, WeightType weights);

  // Both read rows that are `stride` floats apart. all() returns the log probabilities [rows, V] of
  // all tokens, best() the tokens of the query; best() leaves the weights undefined.
  at::Tensor all(const float* vectors, int64_t rows, int64_t stride) const;
  NextTokens best(const float* vectors, int64_t rows, int64_t stride, const NextQuery& query) const;

 private:
  kernels::PackedMatrix matrix_;
};

}  // namespace attend
