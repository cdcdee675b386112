#pragma once

#include <cstdint>
#include <string>

#include "attend/base/settings.h"

namespace attend {

// How texts become symbols.
struct TextConfig {
  std::string source_units = "char";
  std::string target_units = "space";
  int64_t minimum_count = 1;      // rarer symbols are unknown
  bool joint_vocabulary = false;  // one for both sides

  Settings settings();  // keys data.*
};

}  // namespace attend
