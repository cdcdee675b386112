#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/nn/pass.h"

namespace attend {

// The attention of one layer: of its heads, or of the steps of a recurrent decoder.
struct TracedAttention {
  Site site;
  std::vector<AttentionCall> calls;

  std::string name() const;  // "encoder 2", "decoder 1 over the source", "pooling"
  // Calls of one query each that no map of the contexts follows are steps, one below the other;
  // others are groups of heads, beside each other.
  bool in_steps() const;
  bool has_weights() const;         // running sums form none
  bool has_signed_weights() const;  // a weight may be below 0
  int64_t heads() const;
  int64_t rows() const;
  int64_t columns() const;

  // [B, heads, rows, columns], in the network's dtype; only those of `heads` are computed, or all
  // where it is empty. Error where there are none.
  at::Tensor weights(const std::vector<int64_t>& heads = {}) const;
};

// Keeps every call of attention() that it watches, so that weights can be computed afterwards, and
// only those that a caller asks for.
class AttentionTrace : public Watch {
 public:
  AttentionResult attention(const AttentionCall& call, const Pass& rest) override;

  // In the order of their computation; successive calls at one site count as one.
  const std::vector<TracedAttention>& attentions() const { return attentions_; }

  // The mean weights [B, rows, columns] of the heads at a site. Error where nothing attended there.
  at::Tensor mean_weights(const Site& site) const;

 protected:
  void keep(const Site& site, AttentionCall call);

  std::vector<TracedAttention> attentions_;
};

}  // namespace attend
