#pragma once

#include <functional>
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
  Json config;
  TensorFile file = {};
  ForeignModel again = {};
  std::optional<int64_t> end = {};  // the token that ends answers
};

// Adds the tensors that import would make the parameters of by these rows, under names that begin
// with `prefix`.
void add_exported(const PairModel& model, const ExportedTokens& tokens,
                  const std::vector<TensorRow>& rows, int64_t layers, const std::string& prefix,
                  TensorFile& file);

// What `read` makes of the config.json of an export.
ForeignModel read_again(const Json& config,
                        const std::function<ForeignModel(const JsonPlace& config)>& read);

// A model of type lm as GPT2LMHeadModel has it. Error, naming `folder`, on what training moved and
// GPT-2 has not.
ExportedFolder exported_gpt2(const PairModel& model, const ExportedTokens& tokens,
                             const std::string& folder);

}  // namespace attend::internal
