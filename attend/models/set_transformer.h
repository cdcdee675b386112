#pragma once

#include "attend/models/classifier.h"

namespace attend {

// The Set Transformer (Lee et al. 2019): a classifier without positions. Its layers read a set
// through inducing points, and a learned query with several heads pools the result.
struct SetTransformerConfig : ClassifierConfig {
  SetTransformerConfig();

  void check() const;  // Error as ClassifierConfig, and if a layer depends on an order
};

}  // namespace attend
