#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// chrF (Popović 2015) and, with words up to pairs, chrF++ (Popović 2017), as sacreBLEU computes
// them, to the digit: the F score of character and word n-grams, from the mean of the precisions
// and the mean of the recalls of the orders that both texts have.
struct ChrfOptions {
  int64_t character_order = 6;
  int64_t word_order = 0;  // 2 is chrF++
  int64_t beta = 2;        // a recall counts beta times as much as a precision
  bool lowercase = false;
  bool white_space = false;  // as characters too

  void check() const;  // Error on an order or beta out of range
};

// What a sentence adds to the chrF of a corpus, one entry per order: of characters, then of words.
struct ChrfCounts {
  struct Order {
    int64_t hypothesis = 0;  // n-grams
    int64_t reference = 0;
    int64_t matches = 0;
  };
  std::vector<Order> orders;

  ChrfCounts& operator+=(const ChrfCounts& other);
};

// The counts against the reference that scores best. Error on no reference or invalid UTF-8.
ChrfCounts count_chrf(std::string_view hypothesis, const std::vector<std::string>& references,
                      const ChrfOptions& options);

// 0 to 100.
double chrf(const ChrfCounts& counts, const ChrfOptions& options);

// chrF2, chrF2++ and so on.
std::string chrf_name(const ChrfOptions& options);

// sacreBLEU's signature, with `attend` for the version. `references` of each sentence; 0: it
// varies.
std::string chrf_signature(const ChrfOptions& options, int64_t references);

}  // namespace attend
