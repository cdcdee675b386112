#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "attend/inference/model.h"

namespace attend {

// Options common to all commands that decode.
struct DecodeOptions {
  std::vector<std::string> models;  // several decode as one
  ModelOptions model;
  SearchOptions search;
  // Per search option with a default in the model's folder: sets it to that default unless the
  // option was given.
  using TakeDefault = std::function<void(SearchOptions& search, SearchOptions& own)>;
  std::vector<TakeDefault> defaults = {};
};

// --source-column and --target-column, for CSV files.
void add_column_options(CLI::App& command, std::string& source, std::string& target);

// --device and --place.
void add_placement_options(CLI::App& command, DevicePlacement& placement);

// Options of the search, the languages and the prompt, without the models.
void add_search_options(CLI::App& command, DecodeOptions& options);

// `model` (one or several folders), the devices, and the search options.
void add_decode_options(CLI::App& command, DecodeOptions& options);

// Sets search options that were not given to the model's defaults.
void take_search_defaults(DecodeOptions& options, const Model& model);

// Error if an option does not apply to the model.
void check_decode_options(const DecodeOptions& options, const Model& model);

}  // namespace attend
