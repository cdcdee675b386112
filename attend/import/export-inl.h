#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attend/files/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/pair_model.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

// Rows of our tables for the foreign tokens, by their id.
struct ExportedTokens {
  std::vector<int64_t> vectors, biases;
  // A translator reads the rows `answers` in its decoder and has the rows `outputs` in its output.
  std::vector<int64_t> answers = {}, outputs = {};
  bool separate = false;             // whether these rows have other vectors than `vectors`
  std::optional<int64_t> mask = {};  // its id
};

// Files of an export, and the model that import reads from its config.json.
struct ExportedFolder {
  std::string architecture;
  Json config = {};
  TensorFile file = {};
  ForeignModel again = {};
  std::optional<int64_t> end = {};  // token that ends answers
  std::string pieces = {};          // name of a SentencePiece model of both sides; empty: as ours
  std::map<std::string, Json> documents = {};   // further files, by name
  std::map<std::string, TensorFile> more = {};  // further tensor files, by name
};

// Returns the tokens of a model that splits texts by a single tokenizer.json. Error on other
// models.
ExportedTokens exported_tokens(const PairModel& model, const std::string& folder);

// Adds the tensors from which import would make the parameters, by the rows of `made.again`. Their
// names begin with its prefix, if any.
void add_exported(const PairModel& model, const ExportedTokens& tokens, ExportedFolder& made);

// Returns the model that `read` reads from the config.json of an export.
ForeignModel read_again(const Json& config,
                        const std::function<ForeignModel(const JsonPosition& config)>& read);

// Adds the labels, or the marks of a regression, to a config.json.
void add_labels(const PairModel& model, Json& config);
// If the model answers with numbers, scales the output tensors to the unit of the numbers.
void add_unit(const PairModel& model, ExportedFolder& made);

// Adds tokenizer_config.json, which transformers reads with tokenizer.json.
void add_tokenizer_config(const PairModel& model, const ExportedTokens& tokens,
                          ExportedFolder& made);

// Exports to a class of BERT, DistilBERT, ELECTRA, ALBERT, MPNet, ESM-2 or DeBERTa-v2, of T5 if the
// norms are RMS norms, or of ModernBERT if the layers are gated.
ExportedFolder exported_encoder(const PairModel& model, const std::string& folder);
ExportedFolder exported_modernbert(const PairModel& model, const std::string& folder);
ExportedFolder exported_t5_encoder(const PairModel& model, const std::string& folder);
// Exports a model of type vit to ViT's or DeiT's class.
ExportedFolder exported_vision(const PairModel& model, const std::string& folder);

// Export a model of type lm to GPT2LMHeadModel, and one of type transformer to the class of the
// second function that fits: T5ForConditionalGeneration, M2M100ForConditionalGeneration (with
// NLLB's tokenizer or M2M100's), MBartForConditionalGeneration or MarianMTModel. Error if training
// changed parameters that the class lacks.
ExportedFolder exported_gpt2(const PairModel& model, const std::string& folder);
ExportedFolder exported_translator(const PairModel& model, const std::string& folder);
ExportedFolder exported_t5(const PairModel& model, const std::string& folder);
ExportedFolder exported_m2m100(const PairModel& model, const std::string& folder);
ExportedFolder exported_mbart(const PairModel& model, const std::string& folder);
ExportedFolder exported_marian(const PairModel& model, const std::string& folder);

// Adds the files that sentence-transformers reads: modules.json, and the settings and weights of
// the modules in it.
void add_sentence_encoder(const PairModel& model, ExportedFolder& made);
// Adds the prompts of pairs of texts, as a cross-encoder of sentence-transformers has them. Error,
// naming the folder, if the model is none.
void add_pair_prompts(const PairModel& model, const std::string& folder, ExportedFolder& made);

}  // namespace attend::internal
