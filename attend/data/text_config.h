#pragma once

#include <cstdint>
#include <string>

#include "attend/base/settings.h"
#include "attend/data/frame_config.h"
#include "attend/data/units.h"

namespace attend {

// What lines of one source are: examples of their own, or one of which any target is right.
enum class References { each, merged };
inline EnumNames names_of(References) { return {"each", "merged"}; }

// How texts become tokens, and images and sounds frames.
struct TextConfig {
  TokenUnits source_units = TokenUnits::character;
  TokenUnits target_units = TokenUnits::space;
  int64_t minimum_count = 1;      // rarer tokens are unknown
  bool joint_vocabulary = false;  // one for both sides
  // Paths of byte-pair codes, where units are "bpe": of both sides, or of one.
  std::string bpe = "";
  std::string source_bpe = "";
  std::string target_bpe = "";
  NormalForm normalise = NormalForm::nfc;
  References references = References::each;
  bool lowercase = false;
  bool tokenise = false;
  bool language_token = false;  // a source begins with one, such as <2de>

  FrameConfig frames = {};

  bool reads_images() const { return source_units == TokenUnits::image; }
  // Whether sources are files that are read as frames.
  bool reads_frames() const { return reads_images() || source_units == TokenUnits::sound; }

  Setting source_units_setting();
  Settings settings();  // keys data.*, those of frames where the source units are such
};

}  // namespace attend
