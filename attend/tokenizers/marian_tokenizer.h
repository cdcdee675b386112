#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/tokenizers/sentence_piece.h"

namespace attend {

// The tokens of one side of a Marian translator (Junczys-Dowmunt et al. 2018) as transformers'
// MarianTokenizer has them: the pieces of a SentencePiece model by their texts, the language that a
// text begins with, such as >>fra<<, and special tokens. A vocabulary has their ids. Threads may
// share one.
class MarianTokenizer {
 public:
  static constexpr std::string_view end = "</s>", unknown = "<unk>", padding = "<pad>";

  // The bytes of a file such as source.spm; messages call it `name`. Errors as
  // SentencePiece::parse.
  static MarianTokenizer parse(std::string_view bytes, const std::string& name);

  // Special tokens that the text spells are tokens too. The end is not appended.
  std::vector<std::string> split(std::string_view text) const;
  // The text without special tokens and without white space at its ends.
  std::string join(std::span<const std::string> tokens) const;

  const SentencePiece& pieces() const { return pieces_; }

 private:
  explicit MarianTokenizer(SentencePiece pieces) : pieces_(std::move(pieces)) {}

  SentencePiece pieces_;
};

// The tokens of a vocab.json, by their ids. Errors name the file: no object of ids, ids with holes
// or twice, a token that is empty or no UTF-8.
std::vector<std::string> parse_vocabulary(std::string_view bytes, const std::string& name);

}  // namespace attend
