#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// BLEU (Papineni et al. 2002), equal to sacreBLEU (Post 2018) in every digit.
struct BleuOptions {
  // One of bleu_tokenisers(). 13a: as the WMT script mteval-v13a; intl: as mteval-v14, by Unicode
  // punctuation and symbols; zh: each Chinese character is a token, the rest as 13a; char: each
  // character is a token; none: splits at white space, for tokenised texts. The Unicode version of
  // intl is utf8proc's.
  std::string tokenise = "13a";
  // Replaces the matches of an order that has no match (Chen & Cherry 2014). exp: 1/2, and half as
  // much at each further such order; floor: a constant; add-k: adds a constant to orders from 2;
  // none: 0.
  std::string smooth = "exp";
  std::optional<double> smooth_value = {};  // constant of floor (default 0.1) and add-k (default 1)
  bool lowercase = false;
  bool effective_order = false;  // ignore orders longer than the hypothesis; for single sentences

  void check() const;  // Error on an unknown name, or a value not above 0
};

// Counts of one sentence, which add up for a corpus.
struct BleuCounts {
  static constexpr size_t orders = 4;
  std::array<int64_t, orders> matches{};  // n-grams that are also in a reference, clipped
  std::array<int64_t, orders> ngrams{};   // n-grams of the hypothesis
  int64_t hypothesis_length = 0;          // in tokens
  int64_t reference_length = 0;           // the nearest length of a reference, the shorter if tied

  BleuCounts& operator+=(const BleuCounts& other);
};

// Error on no references or invalid UTF-8.
BleuCounts count_bleu(std::string_view hypothesis, const std::vector<std::string>& references,
                      const BleuOptions& options);

struct BleuScore {
  double score = 0;  // 0 to 100
  std::array<double, BleuCounts::orders> precisions{};
  double brevity_penalty = 0;
};
BleuScore bleu(const BleuCounts& counts, const BleuOptions& options);

// sacreBLEU's signature, with `attend` as version. `references`: number per sentence; 0: varies.
std::string bleu_signature(const BleuOptions& options, int64_t references);

// Accepted names of the options.
std::vector<std::string> bleu_tokenisers();
std::vector<std::string> bleu_smoothings();

// Tokens of a text, without lower-casing. Error on an unknown name and on invalid UTF-8.
std::vector<std::string> bleu_tokens(std::string_view text, const std::string& tokenise);

}  // namespace attend
