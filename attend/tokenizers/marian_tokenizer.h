#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/sentence_piece.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend {

// A token that was added to a SentencePiece model. Texts are searched for it before they are split.
struct AddedPiece {
  std::string content;
  bool is_special = false;  // join() leaves it out
};

// The bytes of a SentencePiece model with its added tokens as fields 1000 and 1001, which other
// readers skip, and without them. Errors name the file: a field that goes past its end.
std::string with_added_pieces(std::string model, const std::vector<AddedPiece>& added);
std::string without_added_pieces(std::string_view model, const std::string& name);
std::vector<AddedPiece> added_pieces(std::string_view model, const std::string& name);

// The tokens of one side of a Marian translator (Junczys-Dowmunt et al. 2018) as transformers'
// MarianTokenizer has them: the pieces of a SentencePiece model by their texts, the language that a
// text begins with, such as >>fra<<, and special and added tokens. A vocabulary has their ids.
// Threads may share one.
class MarianTokenizer {
 public:
  static constexpr std::string_view end = "</s>", unknown = "<unk>", padding = "<pad>";

  // The bytes of a file such as source.spm, perhaps with added tokens; messages call it `name`.
  // Errors as SentencePiece::parse.
  static MarianTokenizer parse(std::string_view bytes, const std::string& name);

  // Special and added tokens that the text spells are tokens too. The end is not appended.
  std::vector<std::string> split(std::string_view text) const;
  // The place of each token of split(text), as Tokenizer::places().
  std::vector<TokenPlace> places(std::string_view text) const;
  // The text without special tokens and without white space at its ends.
  std::string join(std::span<const std::string> tokens) const;

  const SentencePiece& pieces() const { return pieces_; }

 private:
  struct Added;

  MarianTokenizer(SentencePiece pieces, std::shared_ptr<const Added> added);

  SentencePiece pieces_;
  std::shared_ptr<const Added> added_;
};

// The tokens of a vocab.json, by their ids. Errors name the file: no object of ids, ids with holes
// or twice, a token that is empty or no UTF-8.
std::vector<std::string> parse_vocabulary(std::string_view bytes, const std::string& name);

}  // namespace attend
