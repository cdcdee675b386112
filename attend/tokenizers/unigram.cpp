#include <algorithm>
#include <cmath>
#include <utility>

#include "attend/tokenizers/cached_model-inl.h"
#include "attend/tokenizers/characters-inl.h"

namespace attend::internal {
namespace {

// The best way from the beginning to one byte of a piece.
struct Way {
  double score = 0;
  size_t begin = 0;  // of its last token
  int32_t id = no_token;

  static constexpr int32_t no_token = -1;  // nothing ends here yet
  static constexpr int32_t unknown = -2;
};

// Bytes begin to end of a piece, and their token or Way::unknown.
struct Part {
  size_t begin, end;
  int32_t id;
};

class UnigramModel : public CachedModel {
 public:
  UnigramModel(TokenTable tokens, std::vector<double> scores, UnigramOptions options)
      : CachedModel(std::move(tokens)),
        scores_(std::move(scores)),
        options_(options),
        byte_tokens_(this->tokens()) {}

  void append_anew(std::string_view piece, std::vector<int32_t>& ids) const override {
    for (const Part& part : best_parts(piece)) {
      if (part.id != Way::unknown) {
        ids.push_back(part.id);
        continue;
      }
      const std::string_view text = piece.substr(part.begin, part.end - part.begin);
      const std::optional<int32_t> id = options_.look_up_unknown ? tokens().id(text) : std::nullopt;
      if (id) {
        ids.push_back(*id);
      } else if (!(options_.by_bytes && byte_tokens_.append(text, ids))) {
        ids.push_back(options_.unknown);
      }
    }
  }

 private:
  std::vector<Way> best_ways(std::string_view piece) const {
    std::vector<Way> ways(piece.size() + 1);
    const auto offer = [&](size_t begin, size_t end, double sum, int32_t id) {
      Way& way = ways[end];
      if (way.id == Way::no_token || sum > way.score) way = {sum, begin, id};
    };
    for (size_t begin = 0; begin < piece.size();) {
      const size_t character = character_size(piece[begin]);
      const double before = ways[begin].score;
      bool known = false;
      tokens().trie().for_each_prefix(piece.substr(begin), [&](size_t size, int32_t id) {
        const double score = scores_[static_cast<size_t>(id)];
        if (std::isnan(score)) return;
        offer(begin, begin + size, kept(before + score),
              id == options_.unknown ? Way::unknown : id);
        known = known || size == character;
      });
      if (!known)
        offer(begin, begin + character, kept(before + options_.unknown_score), Way::unknown);
      begin += character;
    }
    return ways;
  }

  double kept(double sum) const {
    return options_.single_precision ? static_cast<double>(static_cast<float>(sum)) : sum;
  }

  // From left to right; unknown neighbours are one part.
  std::vector<Part> best_parts(std::string_view piece) const {
    const std::vector<Way> ways = best_ways(piece);
    std::vector<Part> parts;
    for (size_t end = piece.size(); end > 0; end = ways[end].begin) {
      const Way& way = ways[end];
      if (way.id == Way::unknown && !parts.empty() && parts.back().id == Way::unknown)
        parts.back().begin = way.begin;
      else
        parts.push_back({way.begin, end, way.id});
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }

  std::vector<double> scores_;
  UnigramOptions options_;
  ByteTokens byte_tokens_;
};

}  // namespace

TokenModelPointer unigram_model(TokenTable tokens, std::vector<double> scores,
                                UnigramOptions options) {
  return std::make_shared<UnigramModel>(std::move(tokens), std::move(scores), options);
}

}  // namespace attend::internal
