#include "attend/models/set_transformer.h"

#include "attend/base/error.h"

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

void SetTransformerConfig::check() const {
  ClassifierConfig::check();
  if (!attends_everywhere())
    fail("model.layer is {}, and a set has no order; take {}", layer, attention_layer);
}

}  // namespace attend
