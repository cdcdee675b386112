#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/nn/pass.h"

namespace attend {

// The attention of one layer: all its heads, or all steps of a recurrent decoder.
struct TracedAttention {
  Site site;
  std::vector<AttentionCall> calls;

  std::string name() const;  // "encoder 2", "decoder 1 over the source", "pooling"
  // True if the calls are steps: one query each, and no output map after the contexts. Otherwise
  // the calls are groups of heads.
  bool in_steps() const;
  bool has_weights() const;         // false for running sums (linear attention)
  bool has_signed_weights() const;  // a weight may be below 0
  int64_t heads() const;
  int64_t rows() const;
  int64_t columns() const;

  // Attention weights [B, heads, rows, columns] in the network's dtype. Computes only `heads`; all
  // heads if empty. Error if a selected head forms no weights.
  at::Tensor weights(const std::vector<int64_t>& heads = {}) const;
};

// Records every call of attention() that it watches. Weights are computed later, on request.
class AttentionTrace : public Watch {
 public:
  AttentionResult attention(const AttentionCall& call, const Pass& rest) override;

  // In order of computation; successive calls at one site form one entry.
  const std::vector<TracedAttention>& attentions() const { return attentions_; }

  // Mean weights [B, rows, columns] over the heads at a site. Error if the site has no attention.
  at::Tensor mean_weights(const Site& site) const;

 protected:
  void keep(const Site& site, AttentionCall call);

  std::vector<TracedAttention> attentions_;
};

}  // namespace attend
