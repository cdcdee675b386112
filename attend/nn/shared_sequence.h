#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "attend/parallel/distributed_attention.h"

namespace attend {

// While it lives, the networks of its thread compute the objective of a batch together with those
// of the other processes: each computes some positions of every sequence, attends over all of them
// and gives its part of the objective. All have the same batches, the same weights and generators
// in the same state; the gradients of all are to be summed. It takes networks whose type's
// NetworkConfig::why_not_shared() is empty, on the CPU. They end in the reverse order of their
// beginning.
class SharingScope {
 public:
  explicit SharingScope(Communicator& world);
  ~SharingScope();
  SharingScope(const SharingScope&) = delete;
  SharingScope& operator=(const SharingScope&) = delete;

 private:
  Communicator* outer_;
};

// While it lives, the layers of its thread are those over one sequence, of which they are given
// the positions that are here: within a SharingScope some, zigzag, else all.
class SharedSequence {
 public:
  // `source_length`: positions of the source that the layers read besides, which is shared too.
  explicit SharedSequence(int64_t length, int64_t source_length = 0);
  ~SharedSequence();
  SharedSequence(const SharedSequence&) = delete;
  SharedSequence& operator=(const SharedSequence&) = delete;

  // The youngest of this thread; null without one, and where it has all positions.
  static const SharedSequence* current();

  // [B, length, ...] -> [B, positions that are here, ...]
  at::Tensor own(const at::Tensor& whole) const;

  int64_t length() const { return length_; }
  const Runs& runs() const { return self_.queries[rank_]; }

  // Who attends together, and where its queries and keys are: at a Site that reads the source those
  // of the source.
  Communicator& world() const { return *world_; }
  const SharedSequences& attended() const;
  const Runs& key_runs() const { return attended().keys[rank_]; }

 private:
  Communicator* world_;
  int64_t length_;
  size_t rank_ = 0;
  SharedSequences self_, cross_;
  const SharedSequence* outer_;
};

// The positions of a tensor of `count` of them, the first of a whole sequence at `offset`.
Runs positions_here(int64_t offset, int64_t count);

// What of(x of a run, its first position) makes of x [..., positions, D], run by run.
template <class Of>
at::Tensor by_runs(const at::Tensor& x, const Runs& runs, Of of) {
  if (runs.size() == 1) return of(x, runs[0].first);
  std::vector<at::Tensor> parts;
  parts.reserve(runs.size());
  int64_t begin = 0;
  for (const Run& run : runs) {
    parts.push_back(of(x.narrow(-2, begin, run.count), run.first));
    begin += run.count;
  }
  return at::cat(parts, -2);
}

}  // namespace attend
