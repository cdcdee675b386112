#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/charsmap-inl.h"
#include "attend/tokenizers/token_model-inl.h"

namespace attend::internal {

// Kind of a piece, with the numbers of the file format.
enum class PieceKind {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// Contents of a SentencePiece file.
struct SentencePieceFile {
  std::vector<std::string> pieces = {};
  std::vector<float> scores = {};
  std::vector<PieceKind> kinds = {};
  int32_t unknown = 0;       // id of the unknown piece
  bool is_unigram = true;    // otherwise byte pairs
  bool by_bytes = false;     // <0x00> to <0xFF> instead of unknown pieces
  std::string unknown_text;  // decoded text of an unknown piece
  Charsmap rules = {};
  std::string charsmap;  // serialised form of `rules`
  bool prefix_space = true;
  bool single_spaces = true;  // removes spaces at the ends and repeated ones
  bool mark_spaces = true;    // writes spaces as U+2581
};

// Returns the byte of a piece such as <0x0A>; none if it has another form.
std::optional<unsigned char> byte_of_piece(std::string_view piece);

// Errors as SentencePiece::parse.
SentencePieceFile parse_sentence_piece(std::string_view bytes, const std::string& name);

// The model of byte pairs. Neighbours that form a piece are joined, the pair with the highest score
// first; among equal scores the leftmost. Unused pieces are split again.
TokenModelPointer scored_pairs_model(TokenTable tokens, const SentencePieceFile& file);

}  // namespace attend::internal
