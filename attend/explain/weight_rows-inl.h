#pragma once

#include <cstdint>
#include <vector>

#include "attend/explain/subject.h"

namespace attend {

// The rows of weights that tokens of an answer are read off, and their replacements: a key that is
// out of scope keeps weight 0, and a row stays in the range of its normaliser. `which` names tokens
// by their places in tokens(), any of them several times, n in all. Draws are the same for all
// heads.
class WeightRows {
 public:
  // Takes at most so many tokens of the answer, evenly spaced, and of them those that read a row
  // with two keys in scope or more: the weight of a single one says nothing.
  WeightRows(const Subject& subject, const TracedAttention& attention, int64_t most);

  const std::vector<int64_t>& tokens() const { return tokens_; }
  // The rows of the attention that the tokens read, int64 [tokens, rows].
  const at::Tensor& rows() const { return rows_; }
  // [tokens, heads, rows, keys] in float64.
  const at::Tensor& weights() const { return weights_; }

  // The key of the largest weight by magnitude, the heads together, and another in scope, drawn at
  // random: bool [tokens, 1, rows, keys]. Where there is no other, none is true.
  at::Tensor largest() const;
  at::Tensor another(const at::Generator& draws) const;

  // [n, heads, rows, keys]. Without the weights of those keys [tokens, 1, rows, keys]; the others
  // of a row that must sum to 1 grow alike.
  at::Tensor without(const at::Tensor& keys) const;
  at::Tensor level() const;  // equal in scope, a row's sum as it is
  at::Tensor permuted(const at::Tensor& which, const at::Generator& draws) const;

  // Every weight that the normaliser allows is made of variables [tokens, heads, rows, places] of
  // any value, by a smooth map. Variables behind weights near those of the answer.
  at::Tensor near(const at::Generator& draws) const;
  at::Tensor of_variables(const at::Tensor& variables) const;

 private:
  bool must_sum_to_one() const { return row_.sums_to_one && !has_sink_; }

  const NormaliserRow& row_;
  bool has_sink_;
  std::vector<int64_t> tokens_;
  at::Tensor rows_;
  at::Tensor weights_, in_scope_;  // [tokens, heads, rows, keys]
};

// How far rows of weights [.., keys] are from others, by what share of the whole each key has, a
// weight below 0 apart from one above: Jensen and Shannon's divergence in nats, 0 to ln 2.
at::Tensor row_divergence(const at::Tensor& a, const at::Tensor& b);

}  // namespace attend
