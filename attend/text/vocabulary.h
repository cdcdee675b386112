#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attend {

// Tokens and their ids. Four ids are fixed; the others are sorted by descending count, then by
// token.
class Vocabulary {
 public:
  static constexpr int64_t padding = 0;
  static constexpr int64_t bos = 1;
  static constexpr int64_t eos = 2;
  static constexpr int64_t unknown = 3;
  static constexpr int64_t first_target = eos;  // padding and BOS are never predicted

  Vocabulary();  // only the fixed tokens

  // Contains every token that occurs at least `minimum_count` times in the sequences; spellings of
  // fixed tokens are ignored. Error if a token is empty, not UTF-8, contains a NUL or, unless it is
  // a line break itself, a line break, or if there are over a million tokens.
  static Vocabulary build(const std::vector<std::vector<std::string>>& sequences,
                          int64_t minimum_count = 1);

  // Like build, from tokens that are counted already.
  static Vocabulary build_from(const std::unordered_map<std::string, int64_t>& counts,
                               int64_t minimum_count = 1);

  // Loads plain text, one token per line, line number = id; a line break is written \n. Errors name
  // file and line: invalid UTF-8, a duplicate, an empty line, missing fixed tokens, over a million
  // tokens, over 256 MiB.
  static Vocabulary load(const std::string& path);
  // Parses the bytes of a file; messages call it `name`.
  static Vocabulary parse(std::string_view bytes, const std::string& name);
  void save(const std::string& path) const;

  // Appends the tokens of `other` that are missing here, in their order; returns their number.
  // Error if there are over a million tokens then.
  int64_t extend(const Vocabulary& other);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  // Returns `unknown` if the token is missing, and for the spelling of a fixed token: no text may
  // produce padding or an end.
  int64_t id(std::string_view token) const;
  const std::string& token(int64_t id) const;  // Error if the id is out of range

  std::vector<int64_t> encode(const std::vector<std::string>& tokens) const;
  std::vector<std::string> decode(const std::vector<int64_t>& ids) const;

 private:
  void add(std::string token);

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t> ids_;
};

// Returns up to eight tokens, in quotes, for which wanted(token) is true, without the fixed ones;
// for messages.
std::string shown_tokens(const Vocabulary& vocabulary,
                         const std::function<bool(const std::string& token)>& wanted);

}  // namespace attend
