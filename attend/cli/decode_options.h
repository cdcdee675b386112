#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <thread>
#include <vector>

#include "attend/inference/predictor.h"

namespace attend {

// The options that every command that decodes shares.
struct DecodeOptions {
  std::vector<std::string> models;  // several decode as one
  Decoding decoding;
  int64_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::string device = "cpu", place;  // as parse_devices has them
};

// How answers are searched for, without the models.
void add_search_options(CLI::App& command, DecodeOptions& options);

// `model`, one or several folders, the devices, and the above.
void add_decode_options(CLI::App& command, DecodeOptions& options);

}  // namespace attend
