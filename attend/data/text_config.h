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
  // Paths of byte-pair codes, where units are "bpe": of both sides, or of one.
  std::string bpe = "";
  std::string source_bpe = "";
  std::string target_bpe = "";
  std::string normalise = "nfc";
  bool lowercase = false;
  bool tokenise = false;

  Settings settings();  // keys data.*
};

}  // namespace attend
