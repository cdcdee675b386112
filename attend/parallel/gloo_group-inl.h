#pragma once

#ifndef USE_C10D_GLOO  // required to declare the class
#define USE_C10D_GLOO
#endif
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "attend/parallel/process_rank.h"

namespace attend::internal {

using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

// The address of this machine in the network that leads to `host`. If it is a loopback address, the
// address in the network that leads elsewhere. Empty if there is none.
std::string own_address_towards(const std::string& host);

// Connects to the other processes, which must be present. Throws exceptions of Gloo and of
// place.meanwhile, and after place.timeout.
GlooGroup connect_gloo(const c10::intrusive_ptr<c10d::Store>& store, const ProcessRank& place);

}  // namespace attend::internal
