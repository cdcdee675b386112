#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018), to the digit.
struct BleuOptions {
  // One of bleu_tokenisers(): 13a splits as the WMT script mteval-v13a does, intl as mteval-v14 by
  // Unicode's punctuation and symbols; zh makes each Chinese character a token and splits the rest
  // as 13a; char makes each character a token; none takes the runs between white space, for texts
  // that are tokenised. Where Unicode's versions differ, intl is of utf8proc's.
  std::string tokenise = "13a";
  // Replaces the matches of an order that has none (Chen & Cherry 2014): exp halves from one such
  // order to the next, floor takes a constant, add-k adds one to orders from 2, none is 0.
  std::string smooth = "exp";
  std::optional<double> smooth_value = {};  // the constant of floor (0.1) and add-k (1)
  bool lowercase = false;
  bool effective_order = false;  // leave out orders longer than the hypothesis: for one sentence

  void check() const;  // Error on an unknown name, or a value that is not above 0
};

// What a sentence adds to the BLEU of a corpus.
struct BleuCounts {
  static constexpr size_t orders = 4;
  std::array<int64_t, orders> matches{};  // n-grams that a reference has too, clipped
  std::array<int64_t, orders> ngrams{};   // of the hypothesis
  int64_t hypothesis_length = 0;          // in tokens
  int64_t reference_length = 0;           // of the reference nearest in length, the shorter of two

  BleuCounts& operator+=(const BleuCounts& other);
};

// Error on no reference or invalid UTF-8.
BleuCounts count_bleu(std::string_view hypothesis, const std::vector<std::string>& references,
                      const BleuOptions& options);

struct BleuScore {
  double score = 0;  // 0 to 100
  std::array<double, BleuCounts::orders> precisions{};
  double brevity_penalty = 0;
};
BleuScore bleu(const BleuCounts& counts, const BleuOptions& options);

// sacreBLEU's signature, with `attend` for the version. `references` of each sentence; 0: it
// varies.
std::string bleu_signature(const BleuOptions& options, int64_t references);

// The names that options take.
std::vector<std::string> bleu_tokenisers();
std::vector<std::string> bleu_smoothings();

// The tokens of a text that is not lower-cased. Error on another name and on invalid UTF-8.
std::vector<std::string> bleu_tokens(std::string_view text, const std::string& tokenise);

}  // namespace attend
