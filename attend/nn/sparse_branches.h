#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "attend/nn/linear.h"
#include "attend/nn/pass.h"

namespace attend {

// Sizes of native sparse attention; block 0: not used.
struct SparseBranchSizes {
  int64_t block = 0;    // keys per block
  int64_t count = 16;   // blocks that a query selects
  int64_t window = 64;  // last keys that a query reads, with its own
};

// Inputs of native sparse attention.
struct SparseHeads {
  at::Tensor query;       // [B, heads, Tq, D]
  at::Tensor key, value;  // [B, key heads, Tk, .]; key heads divide the heads
  int64_t offset = 0;     // position of query 0
};

// Native sparse attention (NSA; Yuan et al. 2025, eq. 5-12, with means as compressed keys and
// values). Three branches read the means of whole past blocks, the keys of selected blocks, and a
// window; `gates` [3, B, heads, Tq, 1] multiply their contexts, which are added: [B, heads, Tq,
// Dv]. A query selects `count` blocks by the weights of their means, added up over the heads that
// share keys; the first block, its own and the one before count first. Equal weights are taken in
// the order of the blocks. `spec` has a causal scope, softmax and no bias. Error on sizes below 1.
at::Tensor sparse_contexts(const SparseBranchSizes& sizes, const SparseHeads& heads,
                           const AttentionSpec& spec, const at::Tensor& gates, const Pass& pass);

// The weights [B, heads, Tq, Tk] that give these contexts; a mean counts as its keys.
at::Tensor sparse_weights(const SparseBranchSizes& sizes, const SparseHeads& heads,
                          const AttentionSpec& spec, const at::Tensor& gates, const Pass& pass);

// Native sparse attention with gates that are sigmoids of a linear map of the query's input.
class SparseBranches : public torch::nn::Module {
 public:
  // `depth` of the input, `heads` of queries. Error on sizes below 1.
  SparseBranches(const SparseBranchSizes& sizes, int64_t depth, int64_t heads);

  // sparse_contexts(); `input` [B, Tq, depth]. A watch sees the weights: a call with normaliser
  // none. `output` as in Pass::attention().
  at::Tensor attend(const SparseHeads& heads, const AttentionSpec& spec, const at::Tensor& input,
                    const at::Tensor& output, const Pass& pass);

 private:
  SparseBranchSizes sizes_;
  int64_t heads_;
  Linear gate_{nullptr};
};

}  // namespace attend
