#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/embedder.h"

namespace attend::internal {

// Contents of the files of a sentence encoder except its settings.
struct TextLayer {
  // The tensors of a layer that reads the vector of a text, and the rows of them.
  std::vector<TensorRow> rows = {};
  TensorFile file = {};
  std::optional<int64_t> longest = {};  // tokens of a text, in place of model_max_length
  bool lowercase = false;               // texts are put into lower case before all else
};

// What precedes the names of its tensors, so that they differ from those of the encoder.
constexpr const char* dense_prefix = "text_layer.";
std::vector<TensorRow> dense_rows(bool has_bias);

// What modules.json and the files that it names say of the vector of a text
// (sentence-transformers); nothing where there is none. Error on parts, on an order of them and on
// ways to pool that are not read, by their names.
TextLayer read_sentence_encoder(const std::string& folder, EmbedderConfig& config);

// Error if the folder holds a cross-encoder, which reads pairs of texts.
void refuse_pairs(const std::string& folder);

}  // namespace attend::internal
