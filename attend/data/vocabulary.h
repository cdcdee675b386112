#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attend {

// Tokens and their ids. Four ids are fixed; the others follow by falling count, then by token.
class Vocabulary {
 public:
  static constexpr int64_t padding = 0;
  static constexpr int64_t bos = 1;
  static constexpr int64_t eos = 2;
  static constexpr int64_t unknown = 3;
  static constexpr int64_t first_target = eos;  // padding and BOS are never predicted

  Vocabulary();  // the fixed tokens alone

  // Every token that the sequences hold at least `minimum_count` times; a text that spells a fixed
  // token adds none. Error on a token that is empty, not UTF-8, or holds a NUL or, without
  // being one, a line break, and on over a million tokens.
  static Vocabulary build(const std::vector<std::vector<std::string>>& sequences,
                          int64_t minimum_count = 1);

  // The same of tokens that were counted already.
  static Vocabulary build_from(const std::unordered_map<std::string, int64_t>& counts,
                               int64_t minimum_count = 1);

  // Plain text, one token per line, line number = id; a line break is written \n. Errors name file
  // and line: bad UTF-8, a duplicate, an empty line, missing fixed tokens, over a million tokens,
  // over 256 MiB.
  static Vocabulary load(const std::string& path);
  // The same for the bytes of a file; messages call it `name`.
  static Vocabulary parse(std::string_view bytes, const std::string& name);
  void save(const std::string& path) const;

  // Adds the tokens of the other that are missing, behind all that are here and in their order;
  // returns how many. Error on over a million tokens.
  int64_t extend(const Vocabulary& other);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  // Unknown when absent, and for the spelling of a fixed token: no text makes padding or an end.
  int64_t id(std::string_view token) const;
  const std::string& token(int64_t id) const;  // Error on an id out of range

  std::vector<int64_t> encode(const std::vector<std::string>& tokens) const;
  std::vector<std::string> decode(const std::vector<int64_t>& ids) const;

 private:
  void add(std::string token);

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t> ids_;
};

// The tokens for which wanted(token) is true, but for the fixed ones, in quotes: the first eight,
// for a message.
std::string shown_tokens(const Vocabulary& vocabulary,
                         const std::function<bool(const std::string& token)>& wanted);

}  // namespace attend
