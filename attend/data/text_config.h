#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attend/base/settings.h"
#include "attend/data/frame_config.h"
#include "attend/data/graph_config.h"
#include "attend/data/interaction_config.h"
#include "attend/data/number_target.h"
#include "attend/data/source_texts.h"
#include "attend/data/text_prompts.h"
#include "attend/text/normalise.h"

namespace attend {

struct DataFormatRow;
struct SourceKind;

// Alternative to units: words, which byte-pair codes split further.
constexpr std::string_view piece_units = "bpe";

// Token that extends sources to data.fill_length.
constexpr const char* fill_token = "<fill>";

// Alternative to units: a pretrained tokenizer splits the texts and adds its special tokens.
constexpr std::string_view tokenizer_units = "tokenizer";

// Whether lines with the same source are separate examples, or one example for which any target is
// correct.
enum class References { each, merged };
inline EnumNames names_of(References) { return {"each", "merged"}; }

// Content of the data: sources and targets, users and their items, or the nodes and edges of a
// graph. Each has a row in data_formats() (data/data_format.h).
enum class DataFormat { pairs, interactions, graph };
inline EnumNames names_of(DataFormat) { return {"pairs", "interactions", "graph"}; }

// How texts are converted to tokens, and images and sounds to frames.
struct TextConfig {
  DataFormat format = DataFormat::pairs;
  std::string source_units = "char";  // or the name of a SourceKind: sources name files
  std::string target_units = "space";
  int64_t minimum_count = 1;      // rarer tokens are unknown
  bool joint_vocabulary = false;  // one vocabulary for both sides
  // Paths of byte-pair codes if units are "bpe": for both sides, or for one.
  std::string bpe = "";
  std::string source_bpe = "";
  std::string target_bpe = "";
  // Paths of a tokenizer.json or a .spm if units are "tokenizer": for both sides, or for targets
  // with a separate one.
  std::string tokenizer = "";
  std::string target_tokenizer = "";
  NormalForm normalise = NormalForm::nfc;
  References references = References::each;
  bool lowercase = false;
  bool tokenise = false;
  bool language_token = false;  // a source begins with a language token, such as <2de>
  // Languages of a tokenizer's texts, as TextTokenizer::in_language(). Empty: the source's default
  // in the tokenizer; the target's is then named with each request.
  std::string source_language = "";
  std::string target_language = "";
  int64_t fill_length = 0;             // shorter sources end with fill tokens; 0: none do
  PairTexts pairs = PairTexts::never;  // whether sources are pairs of texts
  std::string prompts = "";            // before the first text of a pair, see read_text_prompts()
  std::string default_prompt = "";     // name of the usual prompt; empty: none

  TargetKind target = TargetKind::text;
  NumberScale target_scale = {};      // only for numeric targets
  std::string label_separator = "|";  // only for targets of several labels

  FrameConfig frames = {};
  InteractionConfig interactions = {};
  GraphConfig graph = {};

  bool wants_numbers() const { return target == TargetKind::number; }
  bool wants_labels() const { return target == TargetKind::labels; }
  bool wants_spans() const { return target == TargetKind::span; }
  const DataFormatRow& format_row() const;
  TextPrompts text_prompts() const;       // Error as read_text_prompts()
  const SourceKind* source_kind() const;  // kind of sources that name files; null: texts

  // These decide which other keys exist. Source units are a key for pairs only.
  Setting format_setting();
  Setting source_units_setting();
  Setting target_setting();
  Setting pairs_setting();            // a key for pairs only
  Setting label_separator_setting();  // a key if targets are labels
  // Returns the keys data.* for the format, for frames if the source units need them, and for
  // numbers or labels if these are the targets.
  Settings settings();
  Settings pair_settings();  // keys of pairs
};

}  // namespace attend
