#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attend {

// Symbols and their ids. Four ids are fixed; the others follow by falling count, then by symbol.
class Vocabulary {
 public:
  static constexpr int64_t padding = 0;
  static constexpr int64_t start = 1;
  static constexpr int64_t end = 2;
  static constexpr int64_t unknown = 3;

  Vocabulary();  // the fixed symbols alone

  // Every symbol that the sequences hold at least `minimum_count` times; a text that spells a fixed
  // symbol adds none. Error on a symbol that is empty, not UTF-8, or holds a NUL or, without
  // being one, a line break, and on over a million symbols.
  static Vocabulary build(const std::vector<std::vector<std::string>>& sequences,
                          int64_t minimum_count = 1);

  // The same of symbols that were counted already.
  static Vocabulary build_from(const std::unordered_map<std::string, int64_t>& counts,
                               int64_t minimum_count = 1);

  // Plain text, one symbol a line, line number = id; a line break is written \n. Errors name file
  // and line: bad UTF-8, a duplicate, an empty line, missing fixed symbols, over a million symbols,
  // over 256 MiB.
  static Vocabulary load(const std::string& path);
  // The same for the bytes of a file; `name` stands for it in messages.
  static Vocabulary parse(std::string_view bytes, const std::string& name);
  void save(const std::string& path) const;

  int64_t size() const { return static_cast<int64_t>(symbols_.size()); }
  // Unknown when absent, and for the spelling of a fixed symbol: no text makes padding or an end.
  int64_t id(std::string_view symbol) const;
  const std::string& symbol(int64_t id) const;  // Error on an id out of range

  std::vector<int64_t> encode(const std::vector<std::string>& symbols) const;
  std::vector<std::string> decode(const std::vector<int64_t>& ids) const;

 private:
  void add(std::string symbol);

  std::vector<std::string> symbols_;
  std::unordered_map<std::string, int64_t> ids_;
};

}  // namespace attend
