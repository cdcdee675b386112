#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/nn/segment_memory.h"
#include "attend/ops/attention.h"

namespace attend {

// x.index_select(0, rows), rows int64 [n]; undefined if x is undefined.
at::Tensor selected_rows(const at::Tensor& x, const at::Tensor& rows);

// Keys and values for later queries, mapped once, and the number of queries so far. Buffers have
// spare room, so the cost of a step does not grow with its position. Movable but not copyable,
// because steps write into the buffers.
class MultiHeadState {
 public:
  MultiHeadState() = default;  // empty
  MultiHeadState(MultiHeadState&&) = default;
  MultiHeadState& operator=(MultiHeadState&&) = default;
  MultiHeadState(const MultiHeadState&) = delete;
  MultiHeadState& operator=(const MultiHeadState&) = delete;

  int64_t keys() const { return keys_; }  // number of keys
  // Number of keys that the first heads hold; fewer than keys() with a memory of earlier ones.
  int64_t held_keys() const { return groups_.empty() ? 0 : keys_ - groups_[0].first; }
  int64_t queries() const { return queries_; }  // number so far: position of the next query

  // Replaces the rows of the batch by the given rows, int64 [rows], in that order. A row may occur
  // more than once, as for hypotheses of a beam. `same_keys`: every row keeps keys equal to its
  // current ones, so keys and values are not moved.
  void reorder(const at::Tensor& rows, bool same_keys = false);

 private:
  friend class MultiHeadAttention;
  struct Group {
    // [B, key heads, room, .], from key `first` to keys_. Latent heads keep only `keys`. Heads with
    // a memory keep the last segment, and the sums before it; plain_keys: not rotated.
    at::Tensor keys, values, plain_keys;
    int64_t first = 0;
    MemorySums sums;
    at::Tensor index_keys;  // [B, 1, room, .] of an indexer; may be undefined
    at::Tensor key_gates;   // [B, heads, room, 1], numbers per key of a bias; may be undefined
    at::Tensor selected;    // [B, 1, 1, keys], SelectiveBias::total; may be undefined
    at::Tensor queries;     // [B, heads, ., .], the last ones of mixed scores; may be undefined
    PastWeights past;
  };
  std::vector<Group> groups_;
  at::Tensor key_lengths_;
  int64_t keys_ = 0, queries_ = 0;
};

}  // namespace attend
