#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/files/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/embedder.h"

namespace attend::internal {

// Contents of the files of a sentence encoder except its settings.
struct TextLayer {
  // Tensors of layers that read the vector of a text, and their table rows.
  std::vector<TensorRow> rows = {};
  TensorFile file = {};
  std::optional<int64_t> longest = {};  // maximum tokens of a text; overrides model_max_length
  bool lowercase = false;               // texts are first converted to lower case
  // Prompts of a cross-encoder as JSON, see read_text_prompts(), and the name of the usual one.
  std::string prompts = {}, default_prompt = {};
};

// A pooling of sentence-transformers and ours.
struct PoolingName {
  std::string flag;  // key of older files
  std::string name;  // in newer ones
  TextVector vector;
};
const std::vector<PoolingName>& pooling_names();

// Prefixes of the tensors of these layers, to distinguish them from the encoder's.
constexpr const char* dense_prefix = "text_layer.";
constexpr const char* text_norm_prefix = "text_norm.";
std::vector<TensorRow> dense_rows(bool has_bias);
std::vector<TensorRow> text_norm_rows();

// Reads modules.json and the files that it names, which define the vector of a text
// (sentence-transformers). Returns an empty layer if modules.json is missing. Error on unsupported
// modules, orders of modules and pooling methods, by their names.
TextLayer read_sentence_encoder(const std::string& folder, EmbedderConfig& config);

// Reads sentence_bert_config.json. Error on an unsupported setting, and if it is for another task,
// as transformers calls it.
void read_text_settings(const std::string& folder, const char* task, TextLayer& layer);

// Reads the prompts of config_sentence_transformers.json as JSON, and the name of the usual one.
// Error on prompts that are not texts, and on an unknown name.
void read_prompts(const JsonPosition& settings, std::string& prompts, std::string& usual);

}  // namespace attend::internal
