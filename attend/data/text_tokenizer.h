#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/tokenizer.h"

namespace attend {

// The tokenizer of a model that others trained. It splits texts into tokens by name and adds its
// special tokens. Copies share it.
class TextTokenizer {
 public:
  // A tokenizer.json, or, where the name ends in .spm, the SentencePiece model of one side of a
  // Marian translator. Errors as Tokenizer::load and MarianTokenizer::parse.
  static TextTokenizer load(const std::string& path);
  // The same for the bytes of a file; messages call it `name`.
  static TextTokenizer parse(std::string bytes, const std::string& name);

  void save(const std::string& path) const;  // the bytes that were read

  // The same tokenizer, but split() adds no special tokens. Answers are split so: networks add the
  // EOS themselves.
  TextTokenizer without_special_tokens() const;

  int32_t size() const;  // the greatest id, and 1
  // What the token of that id is called in a Vocabulary: as it is spelled, in brackets where a
  // fixed token is spelled so, and by its id where no vocabulary holds it or there is none.
  std::string name(int32_t id) const;
  // The id of the token with such a name; none of a .spm, whose tokens a vocabulary numbers.
  std::optional<int32_t> id(const std::string& name) const;

  // No tokens of an empty text. A limit that the file sets is left out.
  std::vector<std::string> split(std::string_view text) const;
  // The part of the text that each token of split() stands for, as Tokenizer::places().
  std::vector<TokenPlace> places(std::string_view text) const;
  // A readable text of tokens with such names, as Tokenizer::texts(); other names stay.
  std::vector<std::string> texts(const std::vector<std::string>& names) const;
  // The text of tokens with such names; special ones and, of a tokenizer.json, other names are left
  // out.
  std::string join(const std::vector<std::string>& tokens) const;

  // The number of tokens that split() puts before and after a text.
  int64_t opening_tokens() const;
  int64_t closing_tokens() const;
  bool cuts_left() const;  // whether a text that is too long loses its beginning

  // The name of the token for unknown parts of a text; empty if the tokenizer has none.
  std::string unknown() const;

  struct Parts;

 private:
  explicit TextTokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
  bool special_tokens_ = true;
};

// What a token of another's model is called in a Vocabulary, as TextTokenizer::name().
std::string vocabulary_name(const std::string& token, int32_t id);
// The same for a token that no text contains, such as a mask.
std::string name_by_id(int32_t id);

// Whether a tokenizer file is a SentencePiece model, by its name.
bool holds_pieces(std::string_view path);

}  // namespace attend
