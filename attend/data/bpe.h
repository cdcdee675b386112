#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace attend {

// Words and how often each occurs.
using WordCounts = std::unordered_map<std::string, int64_t>;

// Byte-pair encoding (Sennrich et al. 2016): words as pieces that occur often. A word begins as its
// characters, the last of them marked by "</w>"; then each merge in turn joins the two pieces of a
// pair wherever they are neighbours. So frequent words take few tokens, and no word is unknown.
class BytePairEncoding {
 public:
  using Merge = std::pair<std::string, std::string>;

  // Learns up to `merges` merges: each time the pair that occurs most often, and among several the
  // one that is greatest by its first, then its second piece (bytewise). Ends early when none
  // occurs `minimum_count` times. The result is a function of the counts alone.
  static BytePairEncoding learn(const WordCounts& counts, int64_t merges,
                                int64_t minimum_count = 2);

  // subword-nmt's code file: "#version: 0.2", then one merge per line, "a b</w>", the earliest
  // first. A file without the first line, or of version 0.1, has the end of a word as a piece of
  // its own. Packed by gzip or xz or not. Errors name file and line: another version, a line that
  // is not two pieces, invalid UTF-8, over a million merges.
  static BytePairEncoding load(const std::string& path);
  // The same for the bytes of a file; messages call it `name`.
  static BytePairEncoding parse(std::string_view bytes, const std::string& name);
  void save(const std::string& path) const;
  std::string format() const;

  // The pieces of a word, all but the last with "@@" behind them. Error on invalid UTF-8.
  std::vector<std::string> split(std::string_view word) const;
  // Each word of a line as its pieces, with a space between any two and those at the ends kept; and
  // back. A word that itself ends with "@@" is not told from a piece.
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
