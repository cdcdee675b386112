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

// Which positions of a sequence each rank has: its runs, in the order of its tensors. A rank may
// have none.
using Sharding = std::vector<Runs>;

// One run per rank, in the order of the ranks; lengths differ by 1 at most.
Sharding contiguous_sharding(int64_t length, int64_t ranks);

// Two runs per rank: of 2 N pieces rank r has the r-th from the front and the r-th from the back.
// Causal attention then costs each rank the same, in all and in each step of a ring.
Sharding zigzag_sharding(int64_t length, int64_t ranks);

// How many positions there are.
int64_t length_of(const Runs& runs);
int64_t length_of(const Sharding& sharding);

// Error where a position is missing or has two ranks, or where there is another number of ranks.
void check_sharding(const Sharding& sharding, int64_t ranks, const char* name);

// Takes the positions of the runs from a whole sequence, along the axis.
at::Tensor at_runs(const at::Tensor& whole, const Runs& runs, int64_t axis);

// The whole sequence from the tensors of all ranks.
at::Tensor joined(const std::vector<at::Tensor>& of_ranks, const Sharding& sharding, int64_t axis);

}  // namespace attend
