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

// A network of which some heads of attention, or some of their edges, are switched off. A model
// that copies source tokens by the weights of such a head copies nothing by them.
std::shared_ptr<PairNetwork> ablated_network(std::shared_ptr<PairNetwork> network,
                                             std::vector<SwitchedOffHead> off);

}  // namespace attend
