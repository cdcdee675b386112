#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "attend/ops/attention.h"

namespace attend {

// A dictionary that answers a key which it does not hold: soft addressing weighs its values by how
// near their keys are, hard addressing takes the nearest. A spec defines how near: {.score =
// "cosine"}. Differentiable in the queries, in the keys and values that were written and in the
// spec's tensors; hard addressing in the values alone.
//
// It holds at most `capacity` entries, one per key: a key that is equal to the bit replaces its
// entry, and beyond the capacity the oldest entry is removed.
class KeyValueMemory {
 public:
  // Error on a capacity below 1.
  explicit KeyValueMemory(int64_t capacity, AttentionSpec spec = {});

  // keys [n, Dk] and values [n, Dv], in that order; of the depths, dtype and device that were
  // written before. Error otherwise.
  void write(const at::Tensor& keys, const at::Tensor& values);

  // queries [n, Dq] -> context [n, Dv] and lse [n]. These and the next two: Error before anything
  // was written.
  AttentionResult read(const at::Tensor& queries) const;

  // The weights [n, size] behind read(queries), from its lse; entries oldest first.
  at::Tensor weights(const at::Tensor& queries, const at::Tensor& lse) const;

  // The value of the nearest key of each query, [n, Dv]; among equally near ones the oldest.
  at::Tensor lookup(const at::Tensor& queries) const;

  int64_t size() const { return keys_.defined() ? keys_.size(0) : 0; }
  void clear();

 private:
  void check_written() const;
  void write_one(const at::Tensor& key, const at::Tensor& value);

  int64_t capacity_;
  AttentionSpec spec_;
  at::Tensor keys_;    // [size, Dk], oldest first
  at::Tensor values_;  // [size, Dv]
};

}  // namespace attend
