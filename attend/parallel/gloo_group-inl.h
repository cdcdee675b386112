#pragma once

#ifndef USE_C10D_GLOO  // what hides the class
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "attend/parallel/process_place.h"

namespace attend::internal {

using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

// Connects to the other processes, which are there. What Gloo and place.meanwhile throw ends it.
GlooGroup connect_gloo(const c10::intrusive_ptr<c10d::Store>& store, const ProcessPlace& place);

}  // namespace attend::internal
