#include <algorithm>
#include <queue>
#include <tuple>

#include "attend/base/error.h"
#include "attend/text/bpe.h"
#include "attend/text/units.h"

namespace attend {
namespace {

// Pieces and words by index. After a merge, only words with the merged pair are recounted.
class Learner {
 public:
  explicit Learner(const WordCounts& counts) {
    // The indices do not affect the result, which is ordered by the texts.
    for (const auto& [word, count] : counts) {
      std::vector<std::string> characters = split_characters(word);
      if (characters.empty()) continue;
      characters.back() += "</w>";
      Word numbered{{}, count};
      numbered.pieces.reserve(characters.size());
      for (const std::string& character : characters)
        numbered.pieces.push_back(piece_of(character));
      words_.push_back(std::move(numbered));
    }
    for (size_t i = 0; i < words_.size(); ++i) count_pairs(i, 1);
    offer_changed();
  }

  // Returns false if no pair occurs `minimum_count` times.
  bool merge_next(int64_t minimum_count, BytePairEncoding::Merge& merge) {
    while (!heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[key_of(best)].count;
      if (count != best.count) {
        // The count has decreased meanwhile. Pairs with increased counts have been added to the
        // heap again.
        if (count > 0 && count < best.count) heap_.push({count, best.left, best.right});
        continue;
      }
      if (count < minimum_count) return false;
      merge = {texts_[index(best.left)], texts_[index(best.right)]};
      apply(best);
      return true;
    }
    return false;
  }

 private:
  struct Word {
    std::vector<int32_t> pieces;
    int64_t count;
  };
  struct PairCount {
    int64_t count = 0;
    std::vector<size_t> words;  // all that contain it now, and some that did
  };
  struct Candidate {
    int64_t count;
    int32_t left, right;
  };

  static size_t index(int32_t piece) { return static_cast<size_t>(piece); }
  static uint64_t key_of(const Candidate& pair) { return key_of(pair.left, pair.right); }
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  int32_t piece_of(const std::string& text) {
    const auto [found, added] = numbers_.emplace(text, static_cast<int32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }

  void count_pairs(size_t number, int64_t sign) {
    const Word& word = words_[number];
    for (size_t i = 0; i + 1 < word.pieces.size(); ++i) {
      const uint64_t key = key_of(word.pieces[i], word.pieces[i + 1]);
      PairCount& pair = pairs_[key];
      pair.count += sign * word.count;
      if (sign < 0) continue;
      if (pair.words.empty() || pair.words.back() != number) pair.words.push_back(number);
      changed_.push_back(key);
    }
  }

  void offer_changed() {
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const uint64_t key : changed_) {
      const int64_t count = pairs_[key].count;
      if (count > 0)
        heap_.push({count, static_cast<int32_t>(key >> 32), static_cast<int32_t>(key)});
    }
    changed_.clear();
  }

  void apply(const Candidate& pair) {
    const int32_t joined = piece_of(texts_[index(pair.left)] + texts_[index(pair.right)]);
    const std::vector<size_t> words = std::move(pairs_[key_of(pair)].words);
    pairs_[key_of(pair)].words.clear();
    for (const size_t number : words) {
      auto& pieces = words_[number].pieces;
      const auto place = std::adjacent_find(
          pieces.begin(), pieces.end(),
          [&](int32_t a, int32_t b) { return a == pair.left && b == pair.right; });
      if (place == pieces.end()) continue;
      count_pairs(number, -1);
      size_t kept = 0;
      for (size_t i = 0; i < pieces.size(); ++i, ++kept) {
        const bool here =
            i + 1 < pieces.size() && pieces[i] == pair.left && pieces[i + 1] == pair.right;
        pieces[kept] = here ? joined : pieces[i];
        if (here) ++i;
      }
      pieces.resize(kept);
      count_pairs(number, 1);
    }
    offer_changed();
  }

  struct Less {
    const std::vector<std::string>* texts;
    bool operator()(const Candidate& a, const Candidate& b) const {
      const auto rank = [&](const Candidate& pair) {
        return std::tie(pair.count, (*texts)[index(pair.left)], (*texts)[index(pair.right)]);
      };
      return rank(a) < rank(b);
    }
  };

  std::vector<std::string> texts_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<Word> words_;
  std::unordered_map<uint64_t, PairCount> pairs_;
  std::vector<uint64_t> changed_;
  std::priority_queue<Candidate, std::vector<Candidate>, Less> heap_{Less{&texts_}};
};

}  // namespace

BytePairEncoding BytePairEncoding::learn(const WordCounts& counts, int64_t merges,
                                         int64_t minimum_count) {
  if (merges < 1) fail("[BytePairEncoding::learn] {} merges; at least 1 is needed", merges);
  Learner learner(counts);
  std::vector<Merge> learned;
  Merge merge;
  while (static_cast<int64_t>(learned.size()) < merges && learner.merge_next(minimum_count, merge))
    learned.push_back(merge);
  if (learned.empty())
    fail("[BytePairEncoding::learn] no two characters occur together {} times; give more text",
         minimum_count);
  return {std::move(learned), /*end_is_piece=*/false};
}

}  // namespace attend
