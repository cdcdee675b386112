#pragma once

#ifndef USE_C10D_GLOO  // what hides the class
#define USE_C10D_GLOO
#endif
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "attend/parallel/process_place.h"

namespace attend::internal {

using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

// The address by which the machine `host` reaches this one: that of the network that leads there,
// and if it is one of loopback, that of the network that leads elsewhere. Empty if there is none.
std::string own_address_towards(const std::string& host);

// Connects to the other processes, which are there. What Gloo and place.meanwhile throw ends
// it, and so does place.timeout.
GlooGroup connect_gloo(const c10::intrusive_ptr<c10d::Store>& store, const ProcessPlace& place);

}  // namespace attend::internal
