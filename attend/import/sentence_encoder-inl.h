#pragma once

#include <string>
#include <vector>

#include "attend/data/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/embedder.h"

namespace attend::internal {

// The tensors of a layer that reads the vector of a text, and the rows of them.
struct TextLayer {
  std::vector<TensorRow> rows = {};
  TensorFile file = {};
};

// What precedes the names of its tensors, so that they differ from those of the encoder.
constexpr const char* dense_prefix = "text_layer.";
std::vector<TensorRow> dense_rows(bool has_bias);

// What modules.json and the files that it names say of the vector of a text
// (sentence-transformers); nothing where there is none. Error on parts, on an order of them and on
// ways to pool that are not read, by their names.
TextLayer read_sentence_encoder(const std::string& folder, EmbedderConfig& config);

}  // namespace attend::internal
