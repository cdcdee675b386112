#pragma once

#include <CLI/CLI.hpp>
#include <thread>

#include "attend/decode/beam_search.h"

namespace attend {

// The options that every command that decodes shares.
struct DecodeOptions {
  std::string model;
  BeamOptions search;
  int64_t threads = std::max(1U, std::thread::hardware_concurrency());
};

inline void add_decode_options(CLI::App& command, DecodeOptions& options) {
  command.add_option("model", options.model, "model folder")->required();
  command.add_option("--beam", options.search.beam, "hypotheses kept; 1 is greedy search")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option("--length-penalty", options.search.length_penalty,
                  "rank by log probability / length^this; 0 is none")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command.add_option("--threads", options.threads, "sentences decoded in parallel")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

}  // namespace attend
