#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "attend/tokenizers/cached_model-inl.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/sentence_piece_model-inl.h"

namespace attend::internal {
namespace {

// Bytes begin to end of a text, linked with its neighbours.
struct TextSymbol {
  size_t begin, end;
  int32_t before, after;  // or -1
  bool whole = false;     // user-defined: never joined
};

// Two neighbours that form a piece, and its size in bytes.
struct ScoredPair {
  float score;
  int32_t left, right;
  size_t size;

  // For a heap with the highest score at the front, at equal scores the leftmost.
  friend bool operator<(const ScoredPair& a, const ScoredPair& b) {
    return std::tie(a.score, b.left) < std::tie(b.score, a.left);
  }
};

class ScoredPairsModel : public CachedModel {
 public:
  ScoredPairsModel(TokenTable tokens, const SentencePieceFile& file)
      : CachedModel(std::move(tokens)),
        scores_(file.scores),
        kinds_(file.kinds),
        unknown_(file.unknown),
        by_bytes_(file.by_bytes),
        byte_tokens_(this->tokens()) {}

  std::optional<int32_t> unknown() const override { return unknown_; }

 private:
  struct Work {
    std::string_view text;
    std::vector<TextSymbol> symbols = {};
    std::vector<ScoredPair> heap = {};
    // Size in bytes of the left part in the last merge that formed this unused piece.
    std::unordered_map<std::string_view, size_t> unused = {};
  };

  uint32_t append_anew(std::string_view text, std::vector<int32_t>& ids) const override {
    Work work{text};
    begin(work);
    for (int32_t i = 1; i < static_cast<int32_t>(work.symbols.size()); ++i) offer(work, i - 1, i);
    while (!work.heap.empty()) {
      const ScoredPair pair = work.heap.front();
      std::pop_heap(work.heap.begin(), work.heap.end());
      work.heap.pop_back();
      join(work, pair);
    }
    bool in_unknown = false;
    for (int32_t i = work.symbols.empty() ? -1 : 0; i >= 0; i = symbol(work, i).after)
      append_piece(work,
                   text.substr(symbol(work, i).begin, symbol(work, i).end - symbol(work, i).begin),
                   ids, in_unknown);
    return any_text;
  }

  static TextSymbol& symbol(Work& work, int32_t i) { return work.symbols[static_cast<size_t>(i)]; }

  PieceKind kind_of(int32_t id) const { return kinds_[static_cast<size_t>(id)]; }

  // Starts from characters and the longest user-defined pieces.
  void begin(Work& work) const {
    for (size_t begin = 0; begin < work.text.size();) {
      size_t size = character_size(work.text[begin]);
      bool whole = false;
      tokens().trie().for_each_prefix(work.text.substr(begin), [&](size_t length, int32_t id) {
        if (kind_of(id) != PieceKind::user_defined) return;
        size = length;
        whole = true;
      });
      const auto place = static_cast<int32_t>(work.symbols.size());
      work.symbols.push_back({begin, begin + size, place - 1, place + 1, whole});
      begin += size;
    }
    if (!work.symbols.empty()) work.symbols.back().after = -1;
  }

  // Returns the piece with that text, if merges may form it.
  std::optional<int32_t> joinable(std::string_view text) const {
    const std::optional<int32_t> id = tokens().id(text);
    if (!id) return std::nullopt;
    const PieceKind kind = kind_of(*id);
    const bool is_made =
        kind == PieceKind::normal || kind == PieceKind::user_defined || kind == PieceKind::unused;
    return is_made ? id : std::nullopt;
  }

  void offer(Work& work, int32_t left, int32_t right) const {
    if (left < 0 || right < 0 || symbol(work, left).whole || symbol(work, right).whole) return;
    const size_t begin = symbol(work, left).begin, end = symbol(work, right).end;
    const std::string_view text = work.text.substr(begin, end - begin);
    const std::optional<int32_t> id = joinable(text);
    if (!id) return;
    work.heap.push_back({scores_[static_cast<size_t>(*id)], left, right, end - begin});
    std::push_heap(work.heap.begin(), work.heap.end());
    if (kind_of(*id) == PieceKind::unused) work.unused[text] = symbol(work, right).begin - begin;
  }

  void join(Work& work, const ScoredPair& pair) const {
    TextSymbol &left = symbol(work, pair.left), &right = symbol(work, pair.right);
    // One of the two may have grown or been merged into another meanwhile.
    const size_t size = (left.end - left.begin) + (right.end - right.begin);
    if (left.begin == left.end || right.begin == right.end || size != pair.size) return;
    left.end = right.end;
    right.begin = right.end;
    left.after = right.after;
    if (left.after >= 0) symbol(work, left.after).before = pair.left;
    offer(work, left.before, pair.left);
    offer(work, pair.left, left.after);
  }

  void append_piece(const Work& work, std::string_view text, std::vector<int32_t>& ids,
                    bool& in_unknown) const {
    const int32_t id = tokens().id(text).value_or(unknown_);
    if (const auto made = work.unused.find(text);
        kind_of(id) == PieceKind::unused && made != work.unused.end()) {
      append_piece(work, text.substr(0, made->second), ids, in_unknown);
      append_piece(work, text.substr(made->second), ids, in_unknown);
      return;
    }
    if (id != unknown_) {
      ids.push_back(id);
    } else if (!(by_bytes_ && byte_tokens_.append(text, ids)) && !in_unknown) {
      ids.push_back(unknown_);
    }
    in_unknown = id == unknown_;
  }

  std::vector<float> scores_;
  std::vector<PieceKind> kinds_;
  int32_t unknown_;
  bool by_bytes_;
  ByteTokens byte_tokens_;
};

}  // namespace

TokenModelPointer scored_pairs_model(TokenTable tokens, const SentencePieceFile& file) {
  return std::make_shared<ScoredPairsModel>(std::move(tokens), file);
}

}  // namespace attend::internal
