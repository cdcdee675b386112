#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "attend/ops/attention.h"

namespace attend {

// A dictionary that also answers keys that it does not hold. Soft addressing weighs its values by
// the similarity of their keys; hard addressing takes the nearest key. A spec defines the
// similarity: {.score = "cosine"}. Differentiable in the queries, the written keys and values, and
// the tensors of the spec; hard addressing only in the values.
//
// Holds at most `capacity` entries, one per key. A bit-identical key replaces its entry; beyond the
// capacity the oldest entry is removed.
class KeyValueMemory {
 public:
  // Error on a capacity below 1.
  explicit KeyValueMemory(int64_t capacity, AttentionSpec spec = {});

  // Writes keys [n, Dk] and values [n, Dv] in this order. Error unless depths, dtype and device
  // match earlier writes.
  void write(const at::Tensor& keys, const at::Tensor& values);

  // queries [n, Dq] -> context [n, Dv] and lse [n]. This function and the next two: Error before
  // the first write.
  AttentionResult read(const at::Tensor& queries) const;

  // Weights [n, size] of read(queries), from its lse; oldest entry first.
  at::Tensor weights(const at::Tensor& queries, const at::Tensor& lse) const;

  // Value of the nearest key of each query, [n, Dv]; the oldest entry if several are equally near.
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
