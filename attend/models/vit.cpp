#include "attend/models/vit.h"

namespace attend {

VitConfig::VitConfig() {
  self.bias = "";
  positions = Positions::learned;
  activation = HiddenActivation::gelu;
  layers = 4;
  maximum_source_length = 1024;
  pooling = Pooling::class_token;
  word_dropout = 0;
  output_dropout = 0;
}

}  // namespace attend
