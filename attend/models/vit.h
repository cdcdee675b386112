#pragma once

#include "attend/models/classifier.h"

namespace attend {

// The Vision Transformer (Dosovitskiy et al. 2021): a classifier with a class token, layers over
// patches and learned positions. It also reads sounds (Gong et al. 2021).
struct VitConfig : ClassifierConfig {
  VitConfig();
};

}  // namespace attend
