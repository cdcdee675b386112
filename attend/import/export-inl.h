#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/pair_model.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

// The rows that our tables have for their tokens, by id.
struct ExportedTokens {
  std::vector<int64_t> vectors, biases;
  std::optional<int64_t> mask = {};  // the id
};

// What an export writes, and what import reads of its config.json.
struct ExportedFolder {
  std::string architecture;
  Json config = {};
  TensorFile file = {};
  ForeignModel again = {};
  std::optional<int64_t> end = {};              // the token that ends answers
  std::map<std::string, Json> documents = {};   // further files, by name
  std::map<std::string, TensorFile> more = {};  // the same of tensors
};

// The tokens of a model whose texts one tokenizer.json splits. Error on other models.
ExportedTokens exported_tokens(const PairModel& model, const std::string& folder);

// Adds the tensors that import would make the parameters of by the rows of `made.again`, under
// names that begin with its prefix, if any.
void add_exported(const PairModel& model, const ExportedTokens& tokens, ExportedFolder& made);

// What `read` makes of the config.json of an export.
ForeignModel read_again(const Json& config,
                        const std::function<ForeignModel(const JsonPlace& config)>& read);

// Adds the names of labels, or that a number is answered in their place, to a config.json.
void add_labels(const PairModel& model, Json& config);
// Where numbers are answered, has the tensors give them in their own unit.
void add_unit(const PairModel& model, ExportedFolder& made);

// Adds what transformers reads beside a tokenizer.json.
void add_tokenizer_config(const PairModel& model, const ExportedTokens& tokens,
                          ExportedFolder& made);

// A model as a class of BERT's kind has it, of ModernBERT's where its layers are gated.
ExportedFolder exported_encoder(const PairModel& model, const std::string& folder);
ExportedFolder exported_modernbert(const PairModel& model, const std::string& folder);
// A model of type vit as ViT's or DeiT's class has it.
ExportedFolder exported_vision(const PairModel& model, const std::string& folder);

// A model of type lm as GPT2LMHeadModel has it, and one of type transformer as MarianMTModel. Error
// on what training moved and these have not.
ExportedFolder exported_gpt2(const PairModel& model, const std::string& folder);
ExportedFolder exported_marian(const PairModel& model, const std::string& folder);

// Adds the files that sentence-transformers reads: modules.json, and the settings and weights of
// the modules that it names.
void add_sentence_encoder(const PairModel& model, ExportedFolder& made);

}  // namespace attend::internal
