#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace attend {

// Positions first ... first + count - 1 of a sequence.
struct Run {
  int64_t first = 0;
  int64_t count = 0;
};
using Runs = std::vector<Run>;

// The positions of a sequence on each rank: its runs, in the order of its tensors. A rank may have
// no positions.
using Sharding = std::vector<Runs>;

// One run per rank, in rank order; lengths differ by at most 1.
Sharding contiguous_sharding(int64_t length, int64_t ranks);

// Two runs per rank. N ranks divide the sequence into 2 N pieces; rank r has the pieces r and
// 2 N - 1 - r.
// Causal attention then costs the same on each rank, in total and in each step of a ring.
Sharding zigzag_sharding(int64_t length, int64_t ranks);

// Number of positions.
int64_t length_of(const Runs& runs);
int64_t length_of(const Sharding& sharding);

// The same positions, counted from the end of the sequence: for tensors that are reversed.
Sharding mirrored(const Sharding& sharding);

// Error if a position is missing or has two ranks, or if the number of ranks differs.
void check_sharding(const Sharding& sharding, int64_t ranks, const char* name);

// Selects the positions of the runs from a whole sequence, along the axis.
at::Tensor at_runs(const at::Tensor& whole, const Runs& runs, int64_t axis);

// The whole sequence, joined from the tensors of all ranks.
at::Tensor joined(const std::vector<at::Tensor>& of_ranks, const Sharding& sharding, int64_t axis);

}  // namespace attend
