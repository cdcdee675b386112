#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// What an import made.
struct ImportedModel {
  std::string architecture;  // by its own name, such as BertForMaskedLM
  std::string type;          // model.type of the folder that was made
  int64_t weights = 0;       // numbers
  int64_t tokens = 0;        // of the tokenizer; 0: sources are images
  // What the user should know, a line each: keys and tensors that were left aside, labels that were
  // renamed, settings of generation_config.json that are not honoured.
  std::vector<std::string> notes = {};
};

// Makes a model folder of a folder in the format of Hugging Face's transformers: config.json,
// model.safetensors or its shards with their index, and tokenizer.json, or vocab.txt and
// tokenizer_config.json; of a sentence encoder also modules.json and what it names; of a translator
// source.spm, target.spm and vocab.json, of images preprocessor_config.json in place of a
// tokenizer; of models that answer texts also generation_config.json. Answers are those of
// transformers; docs/pretrained.md says which types are read. A
// path that ends with .npz is that of the weights of g2p-en.
//
// Everything in the folder is checked before anything is written. Errors name the file, and: a type
// or an architecture that is not read, a setting that is not honoured, a tensor that
// is missing, left over, of another shape or no floating-point numbers, pickled weights, `out` that
// is there already. Where it was killed, the same call continues.
ImportedModel import_model(const std::string& folder, const std::string& out);

}  // namespace attend
