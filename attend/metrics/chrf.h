#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// chrF (Popović 2015) and, with word order 2, chrF++ (Popović 2017), equal to sacreBLEU in every
// digit. The F score of character and word n-grams uses the means of precision and recall over the
// orders that both texts have.
struct ChrfOptions {
  int64_t character_order = 6;
  int64_t word_order = 0;  // 2: chrF++
  int64_t beta = 2;        // weight of recall relative to precision
  bool lowercase = false;
  bool white_space = false;  // count white space as characters

  void check() const;  // Error on an order or beta out of range
};

// Counts of one sentence, which add up for a corpus; per order: characters first, then words.
struct ChrfCounts {
  struct Order {
    int64_t hypothesis = 0;  // n-grams
    int64_t reference = 0;
    int64_t matches = 0;
  };
  std::vector<Order> orders;

  ChrfCounts& operator+=(const ChrfCounts& other);
};

// Counts against the reference with the best score. Error on no references or invalid UTF-8.
ChrfCounts count_chrf(std::string_view hypothesis, const std::vector<std::string>& references,
                      const ChrfOptions& options);

// 0 to 100.
double chrf(const ChrfCounts& counts, const ChrfOptions& options);

// Name: chrF2, chrF2++ etc.
std::string chrf_name(const ChrfOptions& options);

// sacreBLEU's signature, with `attend` as version. `references`: number per sentence; 0: varies.
std::string chrf_signature(const ChrfOptions& options, int64_t references);

}  // namespace attend
