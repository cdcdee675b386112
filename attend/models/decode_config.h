#pragma once

#include <cstdint>

#include "attend/base/settings.h"

namespace attend {

// Default decoding options of a model: table `decode` of config.toml, which imported models may
// have.
struct DecodeConfig {
  int64_t beam = 1;            // hypotheses kept per source, 1 .. 1000
  double length_penalty = 1;   // 0 .. 10
  int64_t minimum_length = 0;  // minimum tokens of an answer
  int64_t maximum_length = 0;  // maximum tokens of an answer; 0: limit of the model type

  bool operator==(const DecodeConfig&) const = default;

  Settings settings();
};

}  // namespace attend
