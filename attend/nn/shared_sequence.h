#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "attend/nn/pass.h"
#include "attend/parallel/distributed_attention.h"

namespace attend {

// A sequence, and the positions of it that this process holds: a zigzag shard if the pass has a
// world, otherwise all positions. Layers that compute these positions need a pass over() it.
class SharedSequence {
 public:
  // `source_length`: length of the source that the layers also read, which is sharded too.
  SharedSequence(const Pass& pass, int64_t length, int64_t source_length = 0);

  bool is_whole() const { return world_ == nullptr; }

  // [B, length, ...] -> [B, positions of this process, ...]
  at::Tensor own(const at::Tensor& whole) const;

  int64_t length() const { return length_; }
  const Runs& runs() const { return self_.queries[rank_]; }

  // The processes that attend together, and the positions of queries and keys. At a site that reads
  // the source, the keys are the source's. Only valid if the sequence is not whole.
  Communicator& world() const { return *world_; }
  const SharedSequences& attended(const Site& site) const;
  const Runs& key_runs(const Site& site) const { return attended(site).keys[rank_]; }

 private:
  Communicator* world_;
  int64_t length_;
  size_t rank_ = 0;
  SharedSequences self_, cross_;
};

// The positions of a tensor with `count` positions. A whole sequence begins at `offset`.
Runs positions_here(const Pass& pass, int64_t offset, int64_t count);

// Applies map(x of a run, first position of the run) to each run of x [..., positions, D] and
// concatenates the results.
template <class Map>
at::Tensor by_runs(const at::Tensor& x, const Runs& runs, Map map) {
  if (runs.size() == 1) return map(x, runs[0].first);
  std::vector<at::Tensor> parts;
  parts.reserve(runs.size());
  int64_t begin = 0;
  for (const Run& run : runs) {
    parts.push_back(map(x.narrow(-2, begin, run.count), run.first));
    begin += run.count;
  }
  return at::cat(parts, -2);
}

}  // namespace attend
