#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "attend/inference/model.h"

namespace attend {

// The options that every command that decodes shares.
struct DecodeOptions {
  std::vector<std::string> models;  // several decode as one
  ModelOptions model;
  SearchOptions search;
  // For each option of the search that a model folder may have a default for: takes that default
  // if the option was not given.
  using TakeDefault = std::function<void(SearchOptions& search, const SearchOptions& own)>;
  std::vector<TakeDefault> defaults = {};
};

// --source-column and --target-column, of a CSV file.
void add_column_options(CLI::App& command, std::string& source, std::string& target);

// --device and --place.
void add_placement_options(CLI::App& command, DevicePlacement& placement);

// How answers are searched for, without the models.
void add_search_options(CLI::App& command, DecodeOptions& options);

// `model`, one or several folders, the devices, and the above.
void add_decode_options(CLI::App& command, DecodeOptions& options);

// Gives the options of the search that were not given the model's defaults.
void take_search_defaults(DecodeOptions& options, const Model& model);

// Error where an option is of other models.
void check_decode_options(const DecodeOptions& options, const Model& model);

}  // namespace attend
