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
  // and settings that are not read, by their names.
  static Tokenizer load(const std::string& path);
  // The same for the bytes of a file; messages call it `name`.
  static Tokenizer parse(std::string_view bytes, const std::string& name);

  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Two texts as one sequence.
  Encoding encode(std::string_view first, std::string_view second,
                  const EncodeOptions& options = {}) const;

  // The text of the ids; those that no token has, and special ones unless they are kept, are left
  // out.
  std::string decode(std::span<const int32_t> ids, bool keep_special = false) const;

  // The number of special tokens that encode() puts before and after a text.
  int64_t opening_tokens() const;
  int64_t closing_tokens() const;

  // The id of the token that stands for unknown parts of a text; none if the tokenizer makes none.
  std::optional<int32_t> unknown() const;

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
