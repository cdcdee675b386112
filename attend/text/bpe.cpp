#include "attend/text/bpe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <queue>
#include <tuple>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/files/compressed.h"
#include "attend/text/lines.h"
#include "attend/text/units.h"

namespace attend {
namespace {

constexpr std::string_view word_end = "</w>";
constexpr std::string_view joiner = "@@";
constexpr std::string_view version_line = "#version:";

constexpr int64_t maximum_merges = 1'000'000;
constexpr int64_t maximum_codes_line = 1 << 14;
constexpr int64_t maximum_codes_file = int64_t{256} << 20;

constexpr size_t maximum_cached_words = size_t{1} << 18;
constexpr size_t maximum_cached_bytes = 100;  // per word

uint64_t key_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Returns whether the end of a word is a separate piece, as before version 0.2.
bool parse_version(std::string_view line) {
  const size_t first = line.find_first_not_of(' ', version_line.size());
  const std::string_view version = line.substr(std::min(first, line.size()));
  if (version == "0.1") return true;
  if (version == "0.2") return false;
  fail("version {} of byte-pair codes; 0.1 and 0.2 are read", in_quotes(version));
}

BytePairEncoding::Merge parse_merge(std::string_view line) {
  while (line.ends_with(' ')) line.remove_suffix(1);
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || line.find(' ', space + 1) != line.npos)
    fail("{} is not a merge; write two pieces with a space between", in_quotes(line));
  split_characters(line);  // Error if it is not UTF-8
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

}  // namespace

struct BytePairEncoding::Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::vector<std::string>> words;
};

// The pieces of one word, linked: joining two moves no others.
struct BytePairEncoding::Pieces {
  struct Piece {
    int32_t piece;  // or -1: not in any merge
    size_t begin, end;
    int64_t before, after;  // or -1
    bool gone = false;
  };
  std::vector<Piece> list;
};

BytePairEncoding::BytePairEncoding(std::vector<Merge> merges, bool end_is_piece)
    : merges_(std::move(merges)), end_is_piece_(end_is_piece), cache_(std::make_shared<Cache>()) {
  const auto add = [&](const std::string& text) {
    return pieces_.emplace(text, static_cast<int32_t>(pieces_.size())).first->second;
  };
  int64_t rank = 0;
  for (const auto& [left, right] : merges_) {
    const uint64_t key = key_of(add(left), add(right));
    // The first of duplicate merges counts.
    joined_.emplace(key, Joined{rank++, add(left + right)});
  }
}

BytePairEncoding BytePairEncoding::parse(std::string_view bytes, const std::string& name) {
  internal::Lines lines(bytes, name, maximum_codes_line);
  std::vector<Merge> merges;
  bool end_is_piece = true;
  std::string_view line;
  while (lines.next(line)) {
    if (lines.number() == 1 && line.starts_with(version_line)) {
      end_is_piece = internal::at_line(lines, [&] { return parse_version(line); });
      continue;
    }
    if (static_cast<int64_t>(merges.size()) == maximum_merges)
      fail("{}: over {} merges", lines.where(), maximum_merges);
    merges.push_back(internal::at_line(lines, [&] { return parse_merge(line); }));
  }
  if (lines.number() == 0) fail("{}: is empty; byte-pair codes have one merge per line", name);
  return {std::move(merges), end_is_piece};
}

BytePairEncoding BytePairEncoding::load(const std::string& path) {
  return parse(read_packed(path, maximum_codes_file), path);
}

std::string BytePairEncoding::format() const {
  std::string text = fmt::format("{} {}\n", version_line, end_is_piece_ ? "0.1" : "0.2");
  for (const auto& [left, right] : merges_) text += fmt::format("{} {}\n", left, right);
  return text;
}

void BytePairEncoding::save(const std::string& path) const { write_file(path, format()); }

const BytePairEncoding::Joined* BytePairEncoding::find(int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return nullptr;
  const auto found = joined_.find(key_of(left, right));
  return found == joined_.end() ? nullptr : &found->second;
}

int32_t BytePairEncoding::piece_of(const std::string& text) const {
  const auto found = pieces_.find(text);
  return found == pieces_.end() ? -1 : found->second;
}

BytePairEncoding::Pieces BytePairEncoding::characters(std::string_view word) const {
  Pieces pieces;
  const std::vector<std::string> characters = split_characters(word);
  const auto count = static_cast<int64_t>(characters.size());
  pieces.list.reserve(characters.size() + 1);
  size_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::string text = characters[static_cast<size_t>(i)];
    const size_t end = begin + text.size();
    if (i == count - 1 && !end_is_piece_) text += word_end;
    pieces.list.push_back({piece_of(text), begin, end, i - 1, i + 1 < count ? i + 1 : -1});
    begin = end;
  }
  if (end_is_piece_ && count > 0) {
    pieces.list.back().after = count;
    pieces.list.push_back({piece_of(std::string(word_end)), begin, begin, count - 1, -1});
  }
  return pieces;
}

// Applies the earliest applicable merge everywhere, from left to right, then the next one. A heap
// of (rank, index) gives that order without scanning all pieces for each merge.
void BytePairEncoding::join_all(Pieces& pieces) const {
  using RankedPiece = std::pair<int64_t, int64_t>;
  std::priority_queue<RankedPiece, std::vector<RankedPiece>, std::greater<>> heap;
  auto& list = pieces.list;
  const auto entry = [&](int64_t i) -> Pieces::Piece& { return list[static_cast<size_t>(i)]; };
  const auto joined_at = [&](int64_t i) -> const Joined* {
    if (i < 0 || entry(i).gone || entry(i).after < 0) return nullptr;
    return find(entry(i).piece, entry(entry(i).after).piece);
  };
  const auto offer = [&](int64_t i) {
    if (const Joined* joined = joined_at(i)) heap.emplace(joined->rank, i);
  };
  for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) offer(i);
  std::vector<int64_t> changed;
  while (!heap.empty()) {
    const int64_t rank = heap.top().first;
    changed.clear();
    while (!heap.empty() && heap.top().first == rank) {
      const int64_t index = heap.top().second;
      heap.pop();
      const Joined* joined = joined_at(index);
      if (joined == nullptr || joined->rank != rank) continue;
      Pieces::Piece& left = entry(index);
      Pieces::Piece& right = entry(left.after);
      left.piece = joined->piece;
      left.end = right.end;
      left.after = right.after;
      right.gone = true;
      if (left.after >= 0) entry(left.after).before = index;
      changed.push_back(index);
    }
    for (const int64_t index : changed) {
      offer(entry(index).before);
      offer(index);
    }
  }
}

std::vector<std::string> BytePairEncoding::split_anew(std::string_view word) const {
  Pieces pieces = characters(word);
  join_all(pieces);
  std::vector<std::string> texts;
  for (const Pieces::Piece& piece : pieces.list)
    // A separate end of a word that no merge joined has no text.
    if (!piece.gone && piece.begin < piece.end)
      texts.push_back(fmt::format("{}{}", word.substr(piece.begin, piece.end - piece.begin),
                                  piece.end < word.size() ? joiner : ""));
  return texts;
}

std::vector<std::string> BytePairEncoding::split(std::string_view word) const {
  if (word.size() > maximum_cached_bytes) return split_anew(word);
  const std::string key(word);
  {
    const std::lock_guard lock(cache_->mutex);
    const auto found = cache_->words.find(key);
    if (found != cache_->words.end()) return found->second;
  }
  std::vector<std::string> pieces = split_anew(word);
  const std::lock_guard lock(cache_->mutex);
  if (cache_->words.size() >= maximum_cached_words) cache_->words.clear();
  cache_->words.emplace(key, pieces);
  return pieces;
}

std::string BytePairEncoding::apply(std::string_view line) const {
  const size_t first = line.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::string(line);
  std::vector<std::string> pieces;
  for (const std::string_view word : split_words(line))
    for (std::string& piece : split(word)) pieces.push_back(std::move(piece));
  return fmt::format("{}{}{}", line.substr(0, first), fmt::join(pieces, " "),
                     line.substr(line.find_last_not_of(' ') + 1));
}

std::string BytePairEncoding::undo(std::string_view pieces) {
  std::string text;
  text.reserve(pieces.size());
  while (!pieces.empty()) {
    const size_t mark = pieces.find("@@ ");
    text += pieces.substr(0, mark);
    pieces.remove_prefix(mark == pieces.npos ? pieces.size() : mark + 3);
  }
  if (text.ends_with(joiner)) text.resize(text.size() - joiner.size());
  return text;
}

}  // namespace attend
