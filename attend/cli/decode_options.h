#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "attend/inference/model.h"

namespace attend {

// The options that every command that decodes shares.
struct DecodeOptions {
  std::vector<std::string> models;  // several decode as one
  ModelOptions model;
  SearchOptions search;
};

// --source-column and --target-column, of a CSV file.
void add_column_options(CLI::App& command, std::string& source, std::string& target);

// --device and --place.
void add_placement_options(CLI::App& command, DevicePlacement& placement);

// How answers are searched for, without the models.
void add_search_options(CLI::App& command, DecodeOptions& options);

// `model`, one or several folders, the devices, and the above.
void add_decode_options(CLI::App& command, DecodeOptions& options);

}  // namespace attend
