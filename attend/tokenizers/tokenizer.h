#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

namespace internal {
struct TokenizerParts;
}

// The tokens of a text, or of two. `types` are 0 and 1, as BERT tells two texts apart.
struct Encoding {
  std::vector<int32_t> ids = {};
  std::vector<int32_t> types = {};  // of each id
};

// The part of a text that a token stands for, in bytes of whole characters; empty, 0 to 0, if it
// stands for none.
struct TokenPlace {
  size_t begin = 0, end = 0;
  bool is_added = false;  // a special token that encode() puts around the text
};

// A member of a tokenizer.json that transformers has in tokenizer_config.json instead: true if
// special tokens that a text spells are split like other text.
constexpr const char* splits_special_key = "split_special_tokens";

struct EncodeOptions {
  bool special_tokens = true;  // those around a text, such as [CLS] and [SEP]
  // Ids at most, special ones counted; without it, what the tokenizer's own file says. The longer
  // of two texts is cut first.
  std::optional<int64_t> maximum = {};
};

// A tokenizer of a model that others trained, as Hugging Face's `tokenizers` runs it: the same ids
// for the same text. Bytes that are no UTF-8 count as U+FFFD, a longest run of them that begins a
// character as one. Threads may share a tokenizer.
class Tokenizer {
 public:
  // A tokenizer.json. Errors name the file: no JSON, nested over 64 deep, over 256 MiB, a part that
  // is missing or of another type, ids with holes or twice, a merge of what is no token, and parts
  // and settings that are not read, by their names. Only decode() needs the decoder: it throws the
  // error of a decoder that is not read.
  static Tokenizer load(const std::string& path);
  // The same for the bytes of a file; messages call it `name`.
  static Tokenizer parse(std::string_view bytes, const std::string& name);

  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Two texts as one sequence.
  Encoding encode(std::string_view first, std::string_view second,
                  const EncodeOptions& options = {}) const;

  // The place of each id of encode(text), without a limit. Places of a text that its normaliser
  // changes beyond single characters are estimates.
  std::vector<TokenPlace> places(std::string_view text) const;
  // A readable text of each id: the token, or, if the tokenizer spells bytes by other characters,
  // the characters that the token's bytes belong to. Tokens that share a character each have it.
  std::vector<std::string> texts(std::span<const int32_t> ids) const;

  // The text of the ids; those that no token has, and special ones unless they are kept, are left
  // out.
  std::string decode(std::span<const int32_t> ids, bool keep_special = false) const;

  // Number of special tokens that encode() puts before a text, and after it.
  int64_t opening_tokens() const;
  int64_t closing_tokens() const;
  // Whether a limit drops the first tokens of a text instead of the last.
  bool cuts_left() const;

  int32_t size() const;  // the greatest id, and 1
  std::optional<int32_t> id(std::string_view token) const;
  // Error on an id that no token has.
  const std::string& token(int32_t id) const;

  // Of parts that a reader made.
  explicit Tokenizer(std::shared_ptr<const internal::TokenizerParts> parts);

 private:
  std::shared_ptr<const internal::TokenizerParts> parts_;
};

}  // namespace attend
