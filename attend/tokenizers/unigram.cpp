#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attend/tokenizers/cached_model-inl.h"
#include "attend/tokenizers/characters-inl.h"

namespace attend::internal {
namespace {

// The best segmentation of a piece up to one byte.
struct Way {
  double score = 0;
  double lead = std::numeric_limits<double>::infinity();  // over the second best
  size_t begin = 0;                                       // start of its last token
  int32_t id = no_token;

  static constexpr int32_t no_token = -1;  // no segmentation ends here yet
  static constexpr int32_t unknown = -2;
};

// Bytes begin to end of a piece, with a token id or Way::unknown.
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
        byte_tokens_(this->tokens()),
        largest_score_(std::abs(options.unknown_score)) {
    for (const double score : scores_)
      if (!std::isnan(score)) largest_score_ = std::max(largest_score_, std::abs(score));
  }

  std::optional<int32_t> unknown() const override { return options_.unknown; }

  uint32_t append_anew(std::string_view piece, std::vector<int32_t>& ids) const override {
    // Their memory is reused by later calls. There is one call per word.
    thread_local std::vector<Way> ways;
    thread_local std::vector<Part> parts;
    find_best_ways(piece, ways);
    find_best_parts(ways, parts);
    for (const Part& part : parts) {
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
    return longest_text(ways);
  }

 private:
  void find_best_ways(std::string_view piece, std::vector<Way>& ways) const {
    ways.assign(piece.size() + 1, {});
    const auto offer = [&](size_t begin, size_t end, double sum, int32_t id) {
      Way& way = ways[end];
      if (way.id == Way::no_token)
        way = {.score = sum, .begin = begin, .id = id};
      else if (sum > way.score)
        way = {sum, sum - way.score, begin, id};
      else
        way.lead = std::min(way.lead, way.score - sum);
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
  }

  double kept(double sum) const {
    return options_.single_precision ? static_cast<double>(static_cast<float>(sum)) : sum;
  }

  // Returns the maximum length of text in which rounding cannot change the best way. Any other way
  // joins the best one at some byte. Its score there is lower by at least that byte's lead. A way
  // has at most one sum per byte of the piece. The rounding error of a sum is at most `epsilon`
  // times the largest score times the bytes of the text. The factor 4 covers two ways, each rounded
  // here and in the text.
  uint32_t longest_text(const std::vector<Way>& ways) const {
    double lead = std::numeric_limits<double>::infinity();
    for (size_t end = ways.size() - 1; end > 0; end = ways[end].begin)
      lead = std::min(lead, ways[end].lead);
    constexpr double epsilon = std::numeric_limits<float>::epsilon();
    const double sums = 4 * static_cast<double>(ways.size());
    const double bytes = lead / (sums * epsilon * largest_score_);
    return bytes < static_cast<double>(any_text) ? static_cast<uint32_t>(bytes) : any_text;
  }

  // From left to right; a run of unknown characters is one part.
  static void find_best_parts(const std::vector<Way>& ways, std::vector<Part>& parts) {
    parts.clear();
    for (size_t end = ways.size() - 1; end > 0; end = ways[end].begin) {
      const Way& way = ways[end];
      if (way.id == Way::unknown && !parts.empty() && parts.back().id == Way::unknown)
        parts.back().begin = way.begin;
      else
        parts.push_back({way.begin, end, way.id});
    }
    std::reverse(parts.begin(), parts.end());
  }

  std::vector<double> scores_;
  UnigramOptions options_;
  ByteTokens byte_tokens_;
  double largest_score_;
};

}  // namespace

TokenModelPointer unigram_model(TokenTable tokens, std::vector<double> scores,
                                UnigramOptions options) {
  return std::make_shared<UnigramModel>(std::move(tokens), std::move(scores), options);
}

}  // namespace attend::internal
