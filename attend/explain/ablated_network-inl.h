#pragma once

#include <memory>
#include <vector>

#include "attend/explain/knock_out.h"
#include "attend/models/pair_network.h"

namespace attend {

struct SwitchedOffHead {
  AttentionHead head;
  at::Tensor instead = {};  // of its context, [Dv]; undefined: zeros
};

// A network of which some heads of attention, or edges of theirs, are switched off. What copies by
// their weights copies nothing.
std::shared_ptr<PairNetwork> ablated_network(std::shared_ptr<PairNetwork> network,
                                             std::vector<SwitchedOffHead> off);

}  // namespace attend
