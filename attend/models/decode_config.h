#pragma once

#include <cstdint>

#include "attend/base/settings.h"

namespace attend {

// How answers are searched for if a call does not say otherwise: the table `decode` of config.toml,
// which models that others trained may have.
struct DecodeConfig {
  int64_t beam = 1;            // hypotheses kept per source, 1 .. 1000
  double length_penalty = 1;   // 0 .. 10
  int64_t minimum_length = 0;  // tokens of an answer
  int64_t maximum_length = 0;  // tokens of an answer; 0: as the type of the model has it

  bool operator==(const DecodeConfig&) const = default;

  Settings settings();
};

}  // namespace attend
