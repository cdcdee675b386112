#pragma once

#include "attend/models/classifier.h"

namespace attend {

// The Vision Transformer (Dosovitskiy et al. 2021): the classifier whose class token reads patches
// through layers, at learned positions. Sounds are read as well (Gong et al. 2021).
struct VitConfig : ClassifierConfig {
  VitConfig();
};

}  // namespace attend
