#pragma once

#include <cstdint>
#include <string>

namespace attend {

// Pairs (lines) and words in each part of a split dictionary.
struct SplitCounts {
  int64_t train_pairs = 0, train_words = 0;
  int64_t valid_pairs = 0, valid_words = 0;
  int64_t test_pairs = 0, test_words = 0;
};

// Reads a pronouncing dictionary in the CMU format ("word(2) P1 P2 # comment"; stress digits are
// dropped) and writes train.tsv, valid.tsv and test.tsv into `folder` (created when missing). A
// word falls by a hash of its spelling: 90 % train, 5 % valid, 5 % test, so that all its
// pronunciations are on one side. Words are kept when they hold a letter; pronunciations that are
// equal without stress are written once. Errors as read_pairs.
SplitCounts split_cmudict(const std::string& dictionary, const std::string& folder);

// Where Debian's pocketsphinx-en-us puts its dictionary.
inline constexpr const char* debian_cmudict =
    "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict";

}  // namespace attend
