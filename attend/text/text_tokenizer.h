#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/tokenizer.h"

namespace attend {

// Tokens of a source, which is one text or two.
struct SourceTokens {
  std::vector<std::string> names;
  int64_t second = 0;  // index of the second text's first token; names.size() for one text
};

// A pretrained tokenizer. It splits texts into named tokens and adds its special tokens. Copies
// share the data.
class TextTokenizer {
 public:
  // Loads a tokenizer.json or, if the name ends in .spm, the SentencePiece model of one side of a
  // Marian translator. Errors as Tokenizer::load and MarianTokenizer::parse.
  static TextTokenizer load(const std::string& path);
  // Parses the bytes of a file; messages call it `name`.
  static TextTokenizer parse(std::string bytes, const std::string& name);

  void save(const std::string& path) const;  // writes the bytes that were read

  // Returns a tokenizer that splits without adding special tokens. It is used for targets, because
  // networks add EOS themselves.
  TextTokenizer without_special_tokens() const;

  // Names of the languages that tokens mark; empty for most tokenizers.
  std::vector<std::string> languages() const;
  // Returns a tokenizer for texts in a language. Its token replaces the language token that the
  // file puts around a text; if special tokens are not added, it is put before a text. Error, with
  // the nearest name, if the tokenizer lacks the language.
  TextTokenizer in_language(const std::string& language) const;
  // Name of the token of in_language(); empty without a call of it.
  const std::string& language_token() const { return language_token_; }

  int32_t size() const;  // the largest id + 1
  // Returns the name of a token in a Vocabulary: its spelling, in brackets if a fixed token has
  // that spelling. It is derived from the id if a vocabulary cannot contain the token or there is
  // none.
  std::string name(int32_t id) const;
  // Returns the id of the token with that name; empty for a .spm, because a vocabulary has
  // its token ids.
  std::optional<int32_t> id(const std::string& name) const;

  // Returns no tokens for an empty text. Ignores a limit in the file. Error if a text needs a
  // language token, and in_language() was not called.
  std::vector<std::string> split(std::string_view text) const;
  // Splits two texts as one sequence. Error for a .spm, which has no form of pairs.
  SourceTokens split(std::string_view first, std::string_view second) const;
  // Returns the part of the text for each token of split(), as Tokenizer::places().
  std::vector<TokenSpan> places(std::string_view text) const;
  std::vector<TokenSpan> places(std::string_view first, std::string_view second) const;
  // Returns a readable text per token name, as Tokenizer::texts(); unknown names stay unchanged.
  std::vector<std::string> texts(const std::vector<std::string>& names) const;
  // Returns the text of tokens by their names. Omits special tokens and, for a tokenizer.json,
  // unknown names.
  std::string join(const std::vector<std::string>& tokens) const;

  // Number of tokens that split() puts before and after a text.
  int64_t opening_tokens() const;
  int64_t closing_tokens() const;
  // Special tokens around two texts. Errors as Tokenizer::pair_margins(), and for a .spm.
  TextMargins pair_margins() const;
  PairTypes pair_types() const;
  bool cuts_left() const;  // whether a text that is too long loses its beginning

  // Returns the name of the token for unknown parts of a text; empty if there is none.
  std::string unknown() const;

  struct Parts;

 private:
  explicit TextTokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  bool puts_language_first() const;

  std::shared_ptr<const Parts> parts_;
  bool special_tokens_ = true;
  std::string language_token_ = {};
};

// Returns the name of a pretrained model's token in a Vocabulary, as TextTokenizer::name().
std::string vocabulary_name(const std::string& token, int32_t id);
// Returns the name of a token that no text contains, such as a mask.
std::string name_by_id(int32_t id);

// Returns whether a tokenizer file is a SentencePiece model, by its name.
bool holds_pieces(std::string_view path);

}  // namespace attend
