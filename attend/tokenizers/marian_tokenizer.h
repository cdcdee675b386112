#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/sentence_piece.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend {

// A token added to a SentencePiece model. Texts are searched for it before they are split.
struct AddedPiece {
  std::string content;
  bool is_special = false;  // omitted by join()
  // Name of the language that the token marks; empty for other tokens.
  std::string language = {};
};

// Append, remove and read the added tokens of a SentencePiece model. They are stored as fields 1000
// to 1002, which other readers skip. Errors name the file: a field that extends past its end.
std::string with_added_pieces(std::string model, const std::vector<AddedPiece>& added);
std::string without_added_pieces(std::string_view model, const std::string& name);
std::vector<AddedPiece> added_pieces(std::string_view model, const std::string& name);

// Tokens of a translator with a SentencePiece model, as in transformers' MarianTokenizer
// (Junczys-Dowmunt et al. 2018) and M2M100Tokenizer: the texts of the model's pieces, and special
// and added tokens. A leading language token such as >>fra<< is one token if no added token marks a
// language. The ids of tokens are in a vocabulary. Threads may share a tokenizer.
class MarianTokenizer {
 public:
  static constexpr std::string_view end = "</s>", unknown = "<unk>", padding = "<pad>";

  // Parses the bytes of a file such as source.spm, optionally with added tokens; messages call it
  // `name`. Errors as SentencePiece::parse.
  static MarianTokenizer parse(std::string_view bytes, const std::string& name);

  // Splits a text into tokens, including special and added tokens that the text spells. Does not
  // append the end token.
  std::vector<std::string> split(std::string_view text) const;
  // Returns the place of each token of split(text), as Tokenizer::places().
  std::vector<TokenSpan> places(std::string_view text) const;
  // Returns the text without special tokens and without white space at its ends.
  std::string join(std::span<const std::string> tokens) const;

  const SentencePiece& pieces() const { return pieces_; }
  const std::vector<LanguageToken>& languages() const;

 private:
  struct Added;

  MarianTokenizer(SentencePiece pieces, std::shared_ptr<const Added> added);

  SentencePiece pieces_;
  std::shared_ptr<const Added> added_;
};

// Returns the tokens of a vocab.json, ordered by id. Errors name the file: not an object of ids,
// missing or duplicate ids, a token that is empty or not UTF-8.
std::vector<std::string> parse_vocabulary(std::string_view bytes, const std::string& name);

}  // namespace attend
