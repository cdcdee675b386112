#pragma once

#include <cstdint>
#include <vector>

#include "attend/explain/subject.h"

namespace attend {

// Rows of weights that tokens of an answer are read from, and replacements of them. In a
// replacement, a key out of scope keeps weight 0, and a row stays in the range of its normaliser.
// `which` holds n indices into tokens(), with repetition. Draws are the same for all heads.
class WeightRows {
 public:
  // Takes at most `most` tokens of the answer, evenly spaced, that read a row with at least two
  // keys in scope. The weight of a single key has no information.
  WeightRows(const Subject& subject, const TracedAttention& attention, int64_t maximum);

  const std::vector<int64_t>& tokens() const { return tokens_; }
  // Rows of the attention that the tokens read, int64 [tokens, rows].
  const at::Tensor& rows() const { return rows_; }
  // [tokens, heads, rows, keys] in float64.
  const at::Tensor& weights() const { return weights_; }

  // The key of the largest weight by magnitude, summed over heads, and a random other key in scope:
  // bool [tokens, 1, rows, keys]. another() is all false without such a key.
  at::Tensor largest() const;
  at::Tensor another(const at::Generator& draws) const;

  // [n, heads, rows, keys]. Sets the weights of `keys` [tokens, 1, rows, keys] to 0; the other
  // weights of a row that must sum to 1 grow in proportion.
  at::Tensor without(const at::Tensor& keys) const;
  at::Tensor level() const;  // equal in scope; keeps the sum of a row
  at::Tensor permuted(const at::Tensor& which, const at::Generator& draws) const;

  // of_variables() maps unbounded variables [tokens, heads, rows, keys or keys + 1] smoothly to
  // weights that the normaliser allows. near() draws variables of weights close to the answer's.
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

// Returns the Jensen-Shannon divergence, 0 to ln 2 nats, between rows of weights [.., keys] as
// shares. The positive and the negative part of a key count as two items.
at::Tensor row_divergence(const at::Tensor& a, const at::Tensor& b);

}  // namespace attend
