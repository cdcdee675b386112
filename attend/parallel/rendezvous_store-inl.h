#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "attend/parallel/process_rank.h"

namespace attend::internal {

// The key store that all processes of the run share, after every rank has connected. Error if two
// processes have the same rank; exceptions of c10d if the others do not connect in time.
c10::intrusive_ptr<c10d::Store> meeting_store(const ProcessRank& place);

}  // namespace attend::internal
