#pragma once

#include "attend/models/classifier.h"

namespace attend {

// The Set Transformer (Lee et al. 2019): the classifier whose layers know no positions and read a
// set through inducing points, and which a learned query with several heads pools.
struct SetTransformerConfig : ClassifierConfig {
  SetTransformerConfig();
};

}  // namespace attend
