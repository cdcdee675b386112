#pragma once

#include <memory>
#include <vector>

#include "attend/explain/knock_out.h"
#include "attend/models/pair_network.h"

namespace attend {

// A network of which some heads of attention are switched off: their contexts are zeros, and what
// copies by their weights copies nothing.
std::shared_ptr<PairNetwork> ablated_network(std::shared_ptr<PairNetwork> network,
                                             std::vector<AttentionHead> off);

}  // namespace attend
