#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/frame_config.h"
#include "attend/import/config_keys-inl.h"
#include "attend/models/decode_config.h"
#include "attend/models/model_config.h"
#include "attend/tokenizers/json.h"
#include "attend/tokenizers/vocabulary_files.h"

namespace attend::internal {

// How a tensor of theirs becomes a parameter of ours.
enum class TensorUse {
  copied,
  transposed,       // of a layer whose weight has a row for each number that it reads (Conv1D)
  rotary_rows,      // of queries or keys whose heads turn their first half by their second
  token_rows,       // has a row for each of their tokens
  token_biases,     // the same, of their scores
  token_bias_row,   // the same, [1, tokens]; need not be there
  position_rows,    // its rows from ForeignModel::first_position on
  first_row_added,  // to each row of a parameter that an earlier row of the table made
  class_tokens,     // [1, 1, depth], behind those of earlier rows of the table
  class_positions,  // [1, positions, depth], of which those of the class tokens are added to them
  grid_positions,   // the same, of which the others are copied
  patch_weights,    // of a convolution over pixels, scaled for ours
  patch_biases,     // of the same
  repeated,         // has the numbers of the parameter once more; need not be there
  unused,           // need not be there
};

// A row of a table of names.
struct TensorRow {
  std::string theirs = {};  // {} stands for the number of a layer; empty: no tensor, but zeros
  std::string ours = {};    // the same; empty where it is unused
  TensorUse use = TensorUse::copied;
  // One of so many equal parts of what a layer gives is taken.
  int64_t part = 0, parts = 1;
};

// Which of their tokens the fixed ones of our vocabulary stand for, by our ids.
struct FixedTokens {
  std::array<int64_t, 4> rows = {};  // whose vectors they have
  // Whose scores they have, which that token itself then has not, as EOS those of what ends
  // answers; none: no answer has the fixed token.
  std::array<std::optional<int64_t>, 4> scores = {};
};

// Which files split texts.
enum class TokenizerFiles {
  one,    // of tokenizer.json, or of what is older
  sides,  // source.spm and target.spm, with the ids of vocab.json
};

// What older files leave to the code of the type.
struct OlderNames {
  SpecialTokens special = WordPieceFiles{}.tokens.special;
  std::vector<std::string> first_pieces = {};  // in the place of a SentencePiece model's first ones
  size_t replaced_pieces = 0;                  // so many of these
};

// They read gain (x - zero) in place of a channel's x, which is 0 .. 1.
struct PixelScale {
  double gain = 1, zero = 0;
};

// How images are read.
struct ForeignImages {
  FrameConfig frames = {};
  std::string processor = "ViTImageProcessor";  // if preprocessor_config.json names none
  std::vector<PixelScale> pixels = {};          // a channel each
};

// What a config.json describes.
struct ForeignModel {
  std::string architecture;
  ModelConfig config;  // with the type that does the same
  std::string prefix;  // which their names may begin with
  std::vector<TensorRow> tensors;
  size_t head_tensors = 0;  // the last of these, whose names have no prefix
  int64_t layers = 0;
  int64_t heads = 0;                         // of each, where some tensor is used by heads
  int64_t tokens = 0;                        // rows of the embedding
  int64_t positions = 0;                     // rows of that of positions
  int64_t first_position = 0;                // the row of the source's first token or patch
  std::optional<ForeignImages> images = {};  // empty: sources are texts
  std::vector<std::string> labels;           // by number; empty where it has none
  bool answers_number = false;               // in place of a label
  std::optional<FixedTokens> fixed = {};     // empty: all stand for the mask
  TokenizerFiles tokenizer = TokenizerFiles::one;
  OlderNames older = {};     // if there is no tokenizer.json
  std::string output = {};   // their tensor of the output that repeats the embedding; may be ""
  bool tied = true;          // the output is the embedding if `output` is missing
  DecodeConfig decode = {};  // how answers are searched for
  Notes notes = {};          // remarks for the user
};

// A class of transformers and the tensors of its head.
struct ForeignClass {
  std::string name;
  std::vector<std::string> required = {};
  std::vector<std::string> others = {};  // may be missing
  int kind = 0;  // of classes with equal tensors, equal kinds are read alike
};

// A row of the table of types.
struct ForeignType {
  std::string name;  // model_type
  // Error on a setting that is not honoured.
  ForeignModel (*read)(const JsonPlace& config);
  std::vector<ForeignClass> (*classes)();
  // Names of tensors that models of this type only have: they say the type if config.json does not.
  std::vector<std::string> markers = {};
  bool answers_texts = false;                 // by a search, which generation_config.json describes
  std::vector<std::string> other_names = {};  // in model_type of files that name a class of this
};

const std::vector<ForeignType>& foreign_types();

ForeignModel read_bert(const JsonPlace& config);
ForeignModel read_distilbert(const JsonPlace& config);
ForeignModel read_roberta(const JsonPlace& config);
ForeignModel read_xlm_roberta(const JsonPlace& config);
ForeignModel read_camembert(const JsonPlace& config);
ForeignModel read_vit(const JsonPlace& config);
ForeignModel read_deit(const JsonPlace& config);
ForeignModel read_gpt2(const JsonPlace& config);
ForeignModel read_modernbert(const JsonPlace& config);
ForeignModel read_marian(const JsonPlace& config);

std::vector<ForeignClass> bert_classes();
std::vector<ForeignClass> distilbert_classes();
std::vector<ForeignClass> roberta_classes();
std::vector<ForeignClass> vit_classes();
std::vector<ForeignClass> deit_classes();
std::vector<ForeignClass> gpt2_classes();
std::vector<ForeignClass> modernbert_classes();
std::vector<ForeignClass> marian_classes();

}  // namespace attend::internal
