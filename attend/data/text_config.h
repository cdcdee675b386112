#pragma once

#include <cstdint>
#include <string>

#include "attend/base/settings.h"
#include "attend/data/frame_config.h"

namespace attend {

struct SourceKind;

// How texts become tokens, and images and sounds frames.
struct TextConfig {
  std::string source_units = "char";  // or of a SourceKind: a source names a file
  std::string target_units = "space";
  int64_t minimum_count = 1;      // rarer tokens are unknown
  bool joint_vocabulary = false;  // one for both sides
  // Paths of byte-pair codes, where units are "bpe": of both sides, or of one.
  std::string bpe = "";
  std::string source_bpe = "";
  std::string target_bpe = "";
  std::string normalise = "nfc";
  std::string references = "each";
  bool lowercase = false;
  bool tokenise = false;
  bool language_token = false;  // a source begins with one, such as <2de>

  FrameConfig frames = {};

  const SourceKind* source_kind() const;  // of sources that name files; null: texts
  bool merges_references() const { return references == "merged"; }

  Setting source_units_setting();
  Setting references_setting();
  Settings settings();  // keys data.*, those of frames where the source units are such
};

}  // namespace attend
