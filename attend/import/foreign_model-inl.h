#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/frame_config.h"
#include "attend/decode/search_options.h"
#include "attend/files/safetensors.h"
#include "attend/import/config_keys-inl.h"
#include "attend/models/model_config.h"
#include "attend/tokenizers/json.h"
#include "attend/tokenizers/vocabulary_files.h"

namespace attend::internal {

// Conversion of a foreign tensor to a parameter of ours.
enum class TensorUse {
  copied,
  transposed,        // a layer; its weight has a row per input number (Conv1D)
  convolution,       // [depth, depth, width], to a map of `width` neighbours, the first one first
  rotary_rows,       // queries or keys; heads rotate their first half with their second
  token_rows,        // one row per foreign token
  output_rows,       // the same for the output
  token_biases,      // one score per foreign token
  second_row,        // the second of two rows; the first is 0
  token_bias_row,    // the same as [1, tokens]; optional
  position_rows,     // rows from ForeignModel::first_position on
  first_row_added,   // its first row is added to all rows of the parameter, made earlier
  class_tokens,      // [1, 1, depth], appended to class tokens of earlier table rows
  class_positions,   // [1, positions, depth]; positions of class tokens are added to these tokens
  grid_positions,    // the same; the other positions are copied
  patch_weights,     // weights of a convolution over pixels, scaled to our pixels
  patch_biases,      // biases of the same convolution
  repeated,          // repeats the parameter; optional
  repeated_answers,  // the same for token_rows; the row of the token that begins answers may
                     // differ, and becomes the one of our fixed token
  repeated_outputs,  // the same; rows of FixedTokens::scores may differ
  unused,            // optional
};

constexpr bool is_repeated(TensorUse use) {
  return use == TensorUse::repeated || use == TensorUse::repeated_answers ||
         use == TensorUse::repeated_outputs;
}

// Row of a table of tensor names.
struct TensorRow {
  std::string theirs = {};  // {} is the number of a layer; empty: no tensor, use zeros
  std::string ours = {};    // the same; empty if unused
  TensorUse use = TensorUse::copied;
  // Takes part number `part` of `parts` equal parts of the layer's output.
  int64_t part = 0, parts = 1;
};

// Foreign tokens that correspond to our fixed tokens, by our ids.
struct FixedTokens {
  std::array<int64_t, 4> rows = {};  // foreign tokens that provide the vectors
  // The output score of this token moves to our fixed token, such as the end of answers to EOS; the
  // foreign token itself is then never answered. Empty: the fixed token is never answered.
  std::array<std::optional<int64_t>, 4> scores = {};
};

// Returns model.shared_tokens, so that each foreign token keeps one vector in training.
std::string shared_tokens(const FixedTokens& fixed);

// Files that split texts.
enum class TokenizerFiles {
  one,    // tokenizer.json, or older files
  sides,  // source.spm and target.spm, with the ids of vocab.json
};

// Names that older files leave to the code of the type.
struct OlderNames {
  SpecialTokenNames special = WordPieceFiles{}.tokens.special;
  std::vector<std::string> first_pieces = {};  // replace the first pieces of a SentencePiece model
  size_t replaced_pieces = 0;                  // number of replaced pieces
  bool lists_tokens = false;      // vocab.txt has the form of TokenListFiles, not of WordPieceFiles
  bool two_ends = false;          // two texts have two ends between them
  std::string pieces = {};        // name of the SentencePiece model; empty: there is none
  bool changes_texts = false;     // by TextRules, before the pieces
  bool pieces_like_bert = false;  // see PieceFiles
  // Number of tokens <extra_id_N> after the pieces, the highest N first; extra_ids of
  // tokenizer_config.json replaces it.
  int64_t sentinels = 0;
  std::string bytes = {};  // tokenizer_class for bytes as tokens, without a file
};

// Tokenizer class of transformers that marks the language of a text by a token.
struct LanguageTokenizer {
  std::string name;  // tokenizer_class, without the ending Fast
  // Spelling of a language's token: x is a small letter, X a capital; other characters are
  // themselves. The language is the token without _ at its ends.
  std::vector<std::string> forms;
  std::string usual;  // language of a source without src_lang
  // Tokens of languages that follow the pieces of SentencePiece, in order; empty: others follow.
  std::vector<std::string> tokens = {};
  // Ids of pieces and of other tokens are in vocab.json, not in tokenizer.json.
  bool has_ids = false;
  bool keeps_spaces = false;  // see PieceFiles
  // A source ends with its language, and the language of an answer is its start token. Otherwise
  // the language is the first token after the start token.
  bool starts_answers = false;
};

// The foreign model reads gain (x - zero) for a channel's pixel x, 0 .. 1.
struct PixelScale {
  double gain = 1, zero = 0;
};

// Reading of images.
struct ForeignImages {
  FrameConfig frames = {};
  std::string processor = "ViTImageProcessor";  // if preprocessor_config.json names none
  std::vector<PixelScale> pixels = {};          // one per channel
};

// Model that a config.json describes.
struct ForeignModel {
  std::string architecture;
  ModelConfig config;  // with the equivalent type of ours
  std::string prefix;  // optional prefix of tensor names
  std::vector<TensorRow> tensors;
  size_t head_tensors = 0;  // number of last `tensors`; their names lack the prefix
  int64_t layers = 0;
  int64_t heads = 0;                         // per layer; set if a tensor is converted by heads
  int64_t tokens = 0;                        // rows of the embedding
  int64_t positions = 0;                     // rows of the position embedding
  int64_t first_position = 0;                // row of the source's first token or patch
  std::optional<ForeignImages> images = {};  // empty: sources are texts
  std::vector<std::string> labels;           // by number; may be empty
  TargetKind target = TargetKind::text;      // text: a label
  PairTexts pairs = PairTexts::never;        // whether sources are pairs of texts
  std::optional<FixedTokens> fixed = {};     // empty: all have the mask's vector
  TokenizerFiles tokenizer = TokenizerFiles::one;
  // Tokenizers of a translator between languages; the first one if the folder names none, as for
  // transformers. After read_model, only the folder's own.
  std::vector<LanguageTokenizer> languages = {};
  // Whether a language is the first token of an answer.
  bool answers_in_languages() const {
    return !languages.empty() && !languages.front().starts_answers;
  }
  std::optional<int64_t> first_token = {};  // token that begins each answer, such as its language
  OlderNames older = {};                    // if tokenizer.json is missing
  std::string output = {};  // foreign output tensor that repeats the embedding; may be ""
  bool tied = true;         // if `output` is missing, the embedding is the output
  bool forces_end = false;  // whether forced_eos_token_id is the end if config.json lacks it
  SearchOptions decode = {};
  // Completes the model from the tensors of its folder; null: config.json describes all of it.
  void (*complete)(const TensorFile& theirs, ForeignModel& model) = nullptr;
  Notes notes = {};  // for the user
};

// Class of transformers and the tensors of its head.
struct ForeignClass {
  std::string name;
  std::vector<std::string> required = {};
  std::vector<std::string> others = {};  // may be missing
  int kind = 0;                          // classes with equal tensors and equal kind are read alike
};

// Row of the table of types.
struct ForeignType {
  std::string name;  // model_type
  // Error on an unsupported setting.
  ForeignModel (*read)(const JsonPosition& config);
  std::vector<ForeignClass> (*classes)();
  // Tensor names that only models of this type have. They identify the type if config.json does
  // not.
  std::vector<std::string> markers = {};
  bool answers_texts = false;                 // by a search; generation_config.json describes it
  std::vector<std::string> other_names = {};  // accepted with a class of this type
};

const std::vector<ForeignType>& foreign_types();

ForeignModel read_bert(const JsonPosition& config);
ForeignModel read_distilbert(const JsonPosition& config);
ForeignModel read_electra(const JsonPosition& config);
ForeignModel read_roberta(const JsonPosition& config);
ForeignModel read_xlm_roberta(const JsonPosition& config);
ForeignModel read_camembert(const JsonPosition& config);
ForeignModel read_albert(const JsonPosition& config);
ForeignModel read_mpnet(const JsonPosition& config);
ForeignModel read_vit(const JsonPosition& config);
ForeignModel read_deit(const JsonPosition& config);
ForeignModel read_gpt2(const JsonPosition& config);
ForeignModel read_esm(const JsonPosition& config);
ForeignModel read_deberta(const JsonPosition& config);
ForeignModel read_modernbert(const JsonPosition& config);
ForeignModel read_marian(const JsonPosition& config);
ForeignModel read_m2m100(const JsonPosition& config);
ForeignModel read_mbart(const JsonPosition& config);
ForeignModel read_t5(const JsonPosition& config);
ForeignModel read_mt5(const JsonPosition& config);

std::vector<ForeignClass> bert_classes();
std::vector<ForeignClass> distilbert_classes();
std::vector<ForeignClass> electra_classes();
std::vector<ForeignClass> roberta_classes();
std::vector<ForeignClass> albert_classes();
std::vector<ForeignClass> mpnet_classes();
std::vector<ForeignClass> vit_classes();
std::vector<ForeignClass> deit_classes();
std::vector<ForeignClass> gpt2_classes();
std::vector<ForeignClass> esm_classes();
std::vector<ForeignClass> deberta_classes();
std::vector<ForeignClass> modernbert_classes();
std::vector<ForeignClass> marian_classes();
std::vector<ForeignClass> m2m100_classes();
std::vector<ForeignClass> mbart_classes();
std::vector<ForeignClass> t5_classes();
std::vector<ForeignClass> mt5_classes();

}  // namespace attend::internal
