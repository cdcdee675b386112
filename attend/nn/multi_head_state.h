#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/ops/attention.h"

namespace attend {

// These rows of x, int64 [rows]; undefined stays undefined.
at::Tensor selected_rows(const at::Tensor& x, const at::Tensor& rows);

// The keys and values that queries will read, each mapped once, and the number of queries so far.
// Growing keeps room for more, so that a step costs the same however many were before; what it
// writes is its own, so a state can be moved but not copied.
class MultiHeadState {
 public:
  MultiHeadState() = default;  // nothing yet
  MultiHeadState(MultiHeadState&&) = default;
  MultiHeadState& operator=(MultiHeadState&&) = default;
  MultiHeadState(const MultiHeadState&) = delete;
  MultiHeadState& operator=(const MultiHeadState&) = delete;

  int64_t keys() const { return keys_; }        // how many there are
  int64_t queries() const { return queries_; }  // how many have read: the position of the next

  // Continues with these rows of the batch, int64 [rows], in that order; a row may be named more
  // than once: the hypotheses of a beam. `same_keys`: every row has the keys of the row that it
  // replaces, so that these need not move.
  void reorder(const at::Tensor& rows, bool same_keys = false);

 private:
  friend class MultiHeadAttention;
  struct Group {
    at::Tensor keys, values;  // [B, key heads, room, .]; the first keys_ are there
    PastWeights past;
  };
  std::vector<Group> groups_;
  at::Tensor key_lengths_;
  int64_t keys_ = 0, queries_ = 0;
};

}  // namespace attend
