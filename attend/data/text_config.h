#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attend/base/settings.h"
#include "attend/data/frame_config.h"
#include "attend/data/graph_config.h"
#include "attend/data/interaction_config.h"
#include "attend/data/normalise.h"
#include "attend/data/number_target.h"

namespace attend {

struct DataFormatRow;
struct SourceKind;

// In place of units: words, which byte-pair codes split further.
constexpr std::string_view piece_units = "bpe";

// In place of units: another's tokenizer splits the texts and adds its special tokens.
constexpr std::string_view tokenizer_units = "tokenizer";

// What lines of one source are: examples of their own, or one of which any target is right.
enum class References { each, merged };
inline EnumNames names_of(References) { return {"each", "merged"}; }

// What data holds: sources and their targets, users and the items that they took, or the nodes and
// edges of a graph; each has its row in data_formats() (data/data_format.h).
enum class DataFormat { pairs, interactions, graph };
inline EnumNames names_of(DataFormat) { return {"pairs", "interactions", "graph"}; }

// How texts become tokens, and images and sounds frames.
struct TextConfig {
  DataFormat format = DataFormat::pairs;
  std::string source_units = "char";  // or of a SourceKind: a source names a file
  std::string target_units = "space";
  int64_t minimum_count = 1;      // rarer tokens are unknown
  bool joint_vocabulary = false;  // one for both sides
  // Paths of byte-pair codes, where units are "bpe": of both sides, or of one.
  std::string bpe = "";
  std::string source_bpe = "";
  std::string target_bpe = "";
  // Paths of a tokenizer.json or a .spm, where units are "tokenizer": of both sides, or of targets
  // that have one of their own.
  std::string tokenizer = "";
  std::string target_tokenizer = "";
  NormalForm normalise = NormalForm::nfc;
  References references = References::each;
  bool lowercase = false;
  bool tokenise = false;
  bool language_token = false;  // a source begins with one, such as <2de>

  TargetKind target = TargetKind::text;
  NumberScale target_scale = {};  // of targets that are numbers

  FrameConfig frames = {};
  InteractionConfig interactions = {};
  GraphConfig graph = {};

  bool wants_numbers() const { return target == TargetKind::number; }
  const DataFormatRow& format_row() const;
  const SourceKind* source_kind() const;  // of sources that name files; null: texts

  // What other keys there are follows from these; source units are a key of pairs alone.
  Setting format_setting();
  Setting source_units_setting();
  Setting target_setting();
  // Keys data.*: those of the format, those of frames where the source units are such, and those of
  // numbers where targets are.
  Settings settings();
  Settings pair_settings();  // those of pairs
};

}  // namespace attend
