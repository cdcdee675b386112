#include "attend/models/vit.h"

namespace attend {

VitConfig::VitConfig() {
  self.bias = "";
  positions = "learned";
  activation = "gelu";
  layers = 4;
  maximum_source_length = 1024;
  pooling = "class";
  word_dropout = 0;
  output_dropout = 0;
}

}  // namespace attend
