#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "attend/nn/linear.h"
#include "attend/nn/pass.h"

namespace attend {

// Sizes of an indexer; keys 0: not used.
struct KeyIndexerSizes {
  int64_t keys = 0;    // number of keys that each query reads
  int64_t heads = 4;   // heads of the indexer
  int64_t depth = 32;  // depth of the indexer's queries and keys
};

// The `count` keys with the largest scores [.., queries, keys] of each query, bool of that shape;
// equal scores in the order of the keys. Keys with `candidates` false (broadcasts; may be
// undefined) are left out. Error on a count below 1.
at::Tensor top_keys(const at::Tensor& scores, const at::Tensor& candidates, int64_t count);

// The indexer of DeepSeek sparse attention (DSA; DeepSeek-AI 2025, eq. 1-4), without rotation. The
// keys of a query are the sizes.keys with the largest
//   I_ij = sum_h w_ih max(0, q_ih . k_j) / sqrt(depth)
// of its scope, for all heads of the attention. Choices have no gradient; the indexer is trained by
// the divergence of softmax_j(I_ij) from the mean weights of the heads.
class KeyIndexer : public torch::nn::Module {
 public:
  // Depths of the vectors of queries and of keys. Error on sizes below 1.
  KeyIndexer(const KeyIndexerSizes& sizes, int64_t query_depth, int64_t source_depth);

  // Keys [B, 1, T, depth] of the indexer, of source [B, T, source_depth], without its gradient.
  at::Tensor keys(const at::Tensor& source, const Pass& pass);

  // I [B, 1, Tq, Tk] of input [B, Tq, query_depth], without its gradient, and keys [B, 1, Tk,
  // depth].
  at::Tensor scores(const at::Tensor& input, const at::Tensor& keys, const Pass& pass);

  // The chosen keys of `scope` as edges; `scope` itself if there are no more keys than are read.
  Scope chosen(const at::Tensor& scores, const Scope& scope) const;

  // The mean over queries of the divergence, for weights [B, heads, Tq, Tk] with `scope` chosen.
  // Forms all weights of the scores. `lengths` [B] int64: queries without padding; undefined: all.
  static at::Tensor divergence(const at::Tensor& scores, const Scope& scope,
                               const at::Tensor& weights, const at::Tensor& lengths);

 private:
  KeyIndexerSizes sizes_;
  Linear query_{nullptr}, key_{nullptr}, weight_{nullptr};
};

}  // namespace attend
