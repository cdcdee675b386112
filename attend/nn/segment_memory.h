#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "attend/nn/pass.h"

namespace attend {

// Inputs of heads with a memory of earlier segments. Keys begin with a segment; query 0 is at key
// `offset`.
struct SegmentHeads {
  at::Tensor query;                   // [B, heads, Tq, D]
  at::Tensor key, value;              // [B, key heads, Tk, .]; key heads divide the heads
  at::Tensor plain_query, plain_key;  // without rotation by position, for the memory
  int64_t offset = 0;
};

// Sums over the keys of whole segments. Undefined: no segment yet.
struct MemorySums {
  at::Tensor values;  // [B, key heads, D, Dv]: f(k)^T v, f(x) = elu(x) + 1
  at::Tensor total;   // [B, key heads, D, 1]: f(k)
};

// Infini-attention by Munkhdalai et al. 2024, eq. 2-7 and 10, with the linear update. A query reads
// its own segment up to its position by softmax. It reads all segments before by linear attention
// over their sums. Time and memory are linear in the length.
//
//   c_i = (1 - g) softmax(q_i k_j / sqrt(D)) v_j + g f(q_i) M / f(q_i) z.
//
// Here f(x) = elu(x) + 1, M = f(k)^T v and z = f(k). g is a sigmoid of one number per head. Without
// a segment before, the second part is 0.
//
// Contexts [B, heads, Tq, Dv] with segments of `segment` keys. gate: g, broadcasts to [B, heads,
// Tq, 1]. `sums` are the sums of the segments before the keys, and become the sums of the segments
// before the last query's. `spec` gives score (a plain dot product) and dropout.
at::Tensor memory_contexts(int64_t segment, const SegmentHeads& heads, const AttentionSpec& spec,
                           const at::Tensor& gate, MemorySums& sums, const Pass& pass);

// The weights [B, heads, Tq, Tk] that give these contexts, if the keys begin with the first
// segment.
at::Tensor memory_weights(int64_t segment, const SegmentHeads& heads, const AttentionSpec& spec,
                          const at::Tensor& gate);

// The gates, as parameters.
class SegmentMemory : public torch::nn::Module {
 public:
  // Error on a segment or a number of heads below 1.
  SegmentMemory(int64_t segment, int64_t heads);

  // memory_contexts(). A watch sees the weights, as a call with normaliser none, if no sums are
  // given. `output` as in Pass::attention().
  at::Tensor attend(const SegmentHeads& heads, const AttentionSpec& spec, MemorySums& sums,
                    const at::Tensor& output, const Pass& pass) const;

  int64_t segment() const { return segment_; }

 private:
  int64_t segment_;
  at::Tensor beta_;  // [heads]
};

}  // namespace attend
