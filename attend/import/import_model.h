#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Result of an import.
struct ImportedModel {
  std::string architecture;  // name of the foreign class, such as BertForMaskedLM
  std::string type;          // model.type of the new folder
  int64_t weights = 0;       // number of weights
  int64_t tokens = 0;        // tokens of the tokenizer; 0 for images
  // Notes for the user, one line each: ignored keys and tensors, renamed labels, unsupported
  // settings of generation_config.json.
  std::vector<std::string> notes = {};
};

// Makes a model folder from a folder in the format of Hugging Face's transformers. It holds
// config.json, model.safetensors or its shards with their index, and tokenizer.json, or vocab.txt
// and tokenizer_config.json. In addition:
// - a sentence encoder: modules.json and the files that it names;
// - a translator: source.spm, target.spm and vocab.json;
// - a model of images: preprocessor_config.json instead of a tokenizer;
// - a model that answers with texts: generation_config.json, if there is one.
// Answers equal the answers of transformers; docs/pretrained.md lists the supported types. A path
// that ends with .npz names the weights of g2p-en. A path that ends with .keras names a model of
// Keras 3 with additive attention; the pickle of its tokenizers is next to it.
//
// Checks everything in the folder before writing. After a kill, the same call continues. Errors
// name the file:
// - an unsupported type, architecture or setting;
// - a tensor that is missing, left over, of another shape or not of floating-point numbers;
// - pickled weights;
// - `out` that exists already.
ImportedModel import_model(const std::string& folder, const std::string& out);

}  // namespace attend
