#pragma once

#include <optional>
#include <string>

#include "attend/import/foreign_model-inl.h"
#include "attend/import/hub_folder-inl.h"

namespace attend::internal {

// Copies the tokens that begin and end answers from generation_config.json, which overrides
// config.json.
void take_generation_tokens(const std::optional<JsonFile>& generation, JsonFile& config);

// Reads the search settings from generation_config.json or, without it, config.json. A note lists
// unsupported settings. Error on values of a wrong type.
void read_generation(const JsonPosition& settings, bool is_own_file, ForeignModel& model);

// Answers of an exported model.
struct ExportedAnswers {
  int64_t end = 0;           // id of the token that ends them
  int64_t first_tokens = 0;  // number of forced tokens that begin them
  bool continues = false;    // whether they continue their sources
};

// Returns the keys from which read_generation() makes `decode`.
Json exported_generation(const SearchOptions& decode, const ExportedAnswers& answers);

}  // namespace attend::internal
