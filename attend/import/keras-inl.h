#pragma once

#include <string>

#include "attend/tokenizers/json.h"

namespace attend::internal {

// Layers of a Keras model that answers texts with texts by additive attention: paths of their
// weights in model.weights.h5.
struct KerasLayers {
  std::string source_embedding, target_embedding;
  std::string forward, backward;  // GRUs of the encoder
  std::string decoder;            // a GRU
  std::string projection = {};    // reads the annotations; may be empty
  bool projection_has_bias = true;
  std::string attention;
  bool attention_has_scale = true;
  std::string output;
};

// Finds the layers in a config.json of Keras 3: two embeddings, a bidirectional GRU over the
// source, and a GRU over the target that starts from zeros. AdditiveAttention reads the
// annotations, optionally through one linear layer. A softmax layer reads decoder state and
// context. Error, naming the layer and the setting, on any other graph.
KerasLayers read_keras_layers(const JsonPosition& config);

}  // namespace attend::internal
