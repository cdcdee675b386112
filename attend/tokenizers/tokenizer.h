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

// Tokens of one text or of two. `types` is 0 for the first text and 1 for the second, as in BERT.
struct Encoding {
  std::vector<int32_t> ids = {};
  std::vector<int32_t> types = {};  // per id
  int64_t second = 0;               // index of the second text's first id; 0 for one text
};

// The part of a text that a token represents, in bytes; contains whole characters. Empty (0 to 0)
// if the token represents no text.
struct TokenSpan {
  size_t begin = 0, end = 0;
  bool is_added = false;  // a special token that encode() puts around the text
};

// Member of a tokenizer.json that transformers keeps in tokenizer_config.json instead. If true,
// special tokens that a text spells are split like other text.
constexpr const char* splits_special_key = "split_special_tokens";

// Member of a tokenizer.json of a translator: {"en": "__en__"}, names of languages and the tokens
// that mark their texts. transformers keeps them in the code of its classes.
constexpr const char* languages_key = "languages";

struct LanguageToken {
  std::string language, token;
};

// Numbers of tokens of two texts.
struct KeptTokens {
  int64_t first = 0, second = 0;
};
// Returns the numbers of tokens to keep, at most `maximum` together. The longer text is cut first;
// if both are longer than half of the maximum, each keeps a half.
KeptTokens kept_of_two(KeptTokens tokens, int64_t maximum);

// Numbers of special tokens that encode() puts before, between and after two texts, or before and
// after one.
struct TextMargins {
  int64_t before = 0, between = 0, after = 0;
};

// Types of the tokens of two texts: 0 for all; 0 before the second text and 1 from its first token
// on; or others.
enum class PairTypes { same, by_text, other };

struct EncodeOptions {
  bool special_tokens = true;  // adds special tokens around a text, such as [CLS] and [SEP]
  // Maximum number of ids, including special ones; if unset, the limit of the tokenizer's file.
  // The longer of two texts is cut first.
  std::optional<int64_t> maximum = {};
};

// A pretrained tokenizer. Gives the same ids as Hugging Face's `tokenizers`. Each maximal
// ill-formed UTF-8 sequence counts as one U+FFFD. Threads may share a tokenizer.
class Tokenizer {
 public:
  // Loads a tokenizer.json. Errors name the file. Error for invalid JSON, nesting over 64 deep, or
  // a file over 256 MiB. Error if a part is missing or has the wrong type, if ids are missing or
  // duplicate, or if strings of a merge are not tokens. Error for unsupported parts or settings, by
  // name. An unsupported decoder is an Error of decode() only.
  static Tokenizer load(const std::string& path);
  // Parses the bytes of a file; messages call it `name`.
  static Tokenizer parse(std::string_view bytes, const std::string& name);

  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Encodes two texts as one sequence.
  Encoding encode(std::string_view first, std::string_view second,
                  const EncodeOptions& options = {}) const;

  // Returns the place of each id of encode(text), without a limit. Places are estimates if the
  // normaliser changes the text beyond single characters.
  std::vector<TokenSpan> places(std::string_view text) const;
  // Returns the places of the ids of encode(first, second); places in `second` count from its
  // begin.
  std::vector<TokenSpan> places(std::string_view first, std::string_view second) const;
  // Returns a readable text per id: the token, or, if the tokenizer represents bytes by other
  // characters, the characters that the token's bytes belong to. A character that several tokens
  // share is in the text of each.
  std::vector<std::string> texts(std::span<const int32_t> ids) const;

  // Returns the text of the ids. Omits ids without a token and, unless `keep_special`, special
  // tokens.
  std::string decode(std::span<const int32_t> ids, bool keep_special = false) const;

  // Number of special tokens that encode() puts before and after a text.
  int64_t opening_tokens() const;
  int64_t closing_tokens() const;
  // Special tokens around two texts. Error, naming the cause, if the second text comes first or one
  // of them occurs several times.
  TextMargins pair_margins() const;
  PairTypes pair_types() const;
  // Returns whether a limit drops the first tokens of a text instead of the last.
  bool cuts_left() const;

  // Languages of the texts, by name; empty for most tokenizers.
  const std::vector<LanguageToken>& languages() const;
  // Returns the index of the language token among the ids of encode(text); a negative index counts
  // from the end. Empty if no language token is put around a text.
  std::optional<int64_t> language_place() const;

  // Returns the id of the token for unknown parts of a text; none if the tokenizer never produces
  // one.
  std::optional<int32_t> unknown() const;

  int32_t size() const;  // the largest id + 1
  std::optional<int32_t> id(std::string_view token) const;
  // Error on an id without a token.
  const std::string& token(int32_t id) const;

  // For readers of other formats.
  explicit Tokenizer(std::shared_ptr<const internal::TokenizerParts> parts);

 private:
  std::shared_ptr<const internal::TokenizerParts> parts_;
};

}  // namespace attend
