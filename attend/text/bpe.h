#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace attend {

// Number of occurrences per word.
using WordCounts = std::unordered_map<std::string, int64_t>;

// Byte-pair encoding (Sennrich et al. 2016): splits words into frequent pieces. A word starts as
// its characters, the last one marked with "</w>". Each merge in turn joins every neighbouring pair
// of its two pieces. Frequent words get few tokens, and no word is unknown.
class BytePairEncoding {
 public:
  using Merge = std::pair<std::string, std::string>;

  // Learns up to `merges` merges, the most frequent pair first. Among equally frequent pairs, the
  // one that is greatest bytewise by its first, then its second piece is chosen. Stops when no pair
  // occurs `minimum_count` times. The result depends only on the counts.
  static BytePairEncoding learn(const WordCounts& counts, int64_t merges,
                                int64_t minimum_count = 2);

  // Loads a code file of subword-nmt: "#version: 0.2", then one merge per line, "a b</w>", the
  // earliest first. In files of version 0.1 or without the version line, the end of a word is a
  // separate piece. The file may be packed by gzip or xz. Errors name file and line: another
  // version, a line that is not two pieces, invalid UTF-8, over a million merges.
  static BytePairEncoding load(const std::string& path);
  // Parses the bytes of a file; messages call it `name`.
  static BytePairEncoding parse(std::string_view bytes, const std::string& name);
  void save(const std::string& path) const;
  std::string format() const;

  // Returns the pieces of a word, each but the last with "@@" after it. Error on invalid UTF-8.
  std::vector<std::string> split(std::string_view word) const;
  // Splits each word of a line into pieces, separated by spaces; keeps spaces at the ends. undo()
  // joins the pieces again, and also joins words that end with "@@" to the next word.
  std::string apply(std::string_view line) const;
  static std::string undo(std::string_view pieces);

  const std::vector<Merge>& merges() const { return merges_; }

 private:
  struct Pieces;
  struct Cache;
  struct Joined {
    int64_t rank;
    int32_t piece;
  };

  BytePairEncoding(std::vector<Merge> merges, bool end_is_piece);
  const Joined* find(int32_t left, int32_t right) const;
  int32_t piece_of(const std::string& text) const;
  Pieces characters(std::string_view word) const;
  void join_all(Pieces& pieces) const;
  std::vector<std::string> split_anew(std::string_view word) const;

  std::vector<Merge> merges_;
  bool end_is_piece_;
  std::unordered_map<std::string, int32_t> pieces_;
  std::unordered_map<uint64_t, Joined> joined_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace attend
