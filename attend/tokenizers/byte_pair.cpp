#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "attend/tokenizers/cached_model-inl.h"
#include "attend/tokenizers/characters-inl.h"

namespace attend::internal {
namespace {

// A token of a word during merging, in a linked list: joining two moves no others.
struct Symbol {
  int32_t id;
  int32_t before, after;  // or -1
  bool gone = false;
};

// A possible merge of the symbol at `place` with the next one.
struct Candidate {
  int32_t rank, place, joined;

  // For a heap with the earliest merge at the front, at equal ranks the leftmost.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tie(b.rank, b.place) < std::tie(a.rank, a.place);
  }
};

struct RankedMerge {
  int32_t rank, joined;
};

class BytePairModel : public CachedModel {
 public:
  BytePairModel(TokenTable tokens, const std::vector<TokenMerge>& merges, BytePairOptions options)
      : CachedModel(std::move(tokens)), options_(std::move(options)), byte_tokens_(this->tokens()) {
    merges_.reserve(merges.size());
    int32_t rank = 0;
    // The last rank of a duplicate pair counts.
    for (const TokenMerge& merge : merges)
      merges_[key_of(merge.left, merge.right)] = {rank++, merge.joined};
  }

  std::optional<int32_t> unknown() const override { return options_.unknown; }

 private:
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  uint32_t append_anew(std::string_view word, std::vector<int32_t>& ids) const override {
    if (options_.whole_first) {
      if (const std::optional<int32_t> whole = tokens().id(word)) {
        ids.push_back(*whole);
        return any_text;
      }
    }
    std::vector<Symbol> symbols = characters(word);
    join_all(symbols);
    for (const Symbol& symbol : symbols)
      if (!symbol.gone) ids.push_back(symbol.id);
    return any_text;
  }

  std::vector<Symbol> characters(std::string_view word) const {
    std::vector<int32_t> ids;
    bool in_unknown = false;
    std::string affixed;
    for (size_t begin = 0; begin < word.size();) {
      const size_t size = character_size(word[begin]);
      const std::string_view character = word.substr(begin, size);
      affixed.clear();
      if (begin > 0) affixed = options_.prefix;
      affixed += character;
      begin += size;
      if (begin == word.size()) affixed += options_.suffix;
      const std::optional<int32_t> id = tokens().id(affixed);
      if (id) {
        ids.push_back(*id);
      } else if (!(options_.by_bytes && byte_tokens_.append(affixed, ids))) {
        if (options_.unknown && !(in_unknown && options_.join_unknown))
          ids.push_back(*options_.unknown);
        in_unknown = true;
        continue;
      }
      in_unknown = false;
    }
    std::vector<Symbol> symbols;
    symbols.reserve(ids.size());
    const auto count = static_cast<int32_t>(ids.size());
    for (int32_t i = 0; i < count; ++i)
      symbols.push_back({ids[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    return symbols;
  }

  const RankedMerge* merge_after(const std::vector<Symbol>& symbols, int32_t place) const {
    const Symbol& left = symbols[static_cast<size_t>(place)];
    if (left.after < 0) return nullptr;
    const auto found = merges_.find(key_of(left.id, symbols[static_cast<size_t>(left.after)].id));
    return found == merges_.end() ? nullptr : &found->second;
  }

  void join_all(std::vector<Symbol>& symbols) const {
    std::vector<Candidate> heap;
    const auto offer = [&](int32_t place) {
      if (place < 0) return;
      if (const RankedMerge* merge = merge_after(symbols, place)) {
        heap.push_back({merge->rank, place, merge->joined});
        std::push_heap(heap.begin(), heap.end());
      }
    };
    for (size_t i = 0; i < symbols.size(); ++i) offer(static_cast<int32_t>(i));
    while (!heap.empty()) {
      const Candidate first = heap.front();
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      Symbol& left = symbols[static_cast<size_t>(first.place)];
      if (left.gone) continue;
      // One of the two may have been merged with another symbol meanwhile.
      const RankedMerge* merge = merge_after(symbols, first.place);
      if (merge == nullptr || merge->joined != first.joined) continue;
      Symbol& right = symbols[static_cast<size_t>(left.after)];
      left.id = first.joined;
      left.after = right.after;
      right.gone = true;
      if (left.after >= 0) symbols[static_cast<size_t>(left.after)].before = first.place;
      offer(left.before);
      offer(first.place);
    }
  }

  BytePairOptions options_;
  ByteTokens byte_tokens_;
  std::unordered_map<uint64_t, RankedMerge> merges_;
};

}  // namespace

TokenModelPointer byte_pair_model(TokenTable tokens, const std::vector<TokenMerge>& merges,
                                  BytePairOptions options) {
  return std::make_shared<BytePairModel>(std::move(tokens), merges, std::move(options));
}

}  // namespace attend::internal
