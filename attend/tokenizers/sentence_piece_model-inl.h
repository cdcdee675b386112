#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/charsmap-inl.h"
#include "attend/tokenizers/token_model-inl.h"

namespace attend::internal {

// What a piece is for; the numbers are those of the file.
enum class PieceKind {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// What a SentencePiece file says.
struct SentencePieceFile {
  std::vector<std::string> pieces = {};
  std::vector<float> scores = {};
  std::vector<PieceKind> kinds = {};
  int32_t unknown = 0;       // its id
  bool is_unigram = true;    // or byte pairs
  bool by_bytes = false;     // <0x00> to <0xFF> instead of unknown pieces
  std::string unknown_text;  // what an unknown piece is decoded as
  Charsmap rules = {};
  std::string charsmap;  // the bytes of these
  bool prefix_space = true;
  bool single_spaces = true;  // none at the ends and one between words
  bool mark_spaces = true;    // spaces are written as U+2581
};

// The byte that a piece such as <0x0A> stands for; none where it is written otherwise.
std::optional<unsigned char> byte_of_piece(std::string_view piece);

// Errors as SentencePiece::parse.
SentencePieceFile parse_sentence_piece(std::string_view bytes, const std::string& name);

// The model of byte pairs: of neighbours that are a piece together, those of the greatest score
// become one, the leftmost of several. Pieces that are unused are taken apart again.
TokenModelPointer scored_pairs_model(TokenTable tokens, const SentencePieceFile& file);

}  // namespace attend::internal
