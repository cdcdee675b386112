#pragma once

#include <memory>
#include <vector>

#include "attend/explain/knock_out.h"
#include "attend/models/pair_network.h"

namespace attend {

struct SwitchedOffHead {
  AttentionHead head;
  at::Tensor instead = {};  // replaces its context, [Dv]; undefined: zeros
};

// Returns the network with some attention heads or edges switched off. A model that copies source
// tokens by the weights of such a head copies nothing by it.
std::shared_ptr<PairNetwork> ablated_network(std::shared_ptr<PairNetwork> network,
                                             std::vector<SwitchedOffHead> off);

}  // namespace attend
