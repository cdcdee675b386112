#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "attend/parallel/process_place.h"

namespace attend::internal {

// The store of keys that all processes of the run read and write, once every rank has connected.
// Error where two have one rank; what c10d throws where the others do not connect in time.
c10::intrusive_ptr<c10d::Store> meeting_store(const ProcessPlace& place);

}  // namespace attend::internal
