#include "attend/models/set_transformer.h"

namespace attend {

SetTransformerConfig::SetTransformerConfig() {
  self.bias = "";
  layers = 2;
  inducing_points = 16;
  pooling = Pooling::multi_head;
  dropout = 0;
  word_dropout = 0;
  output_dropout = 0;
}

}  // namespace attend
