#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// Numbers of pairs (lines) and words in each part of a split dictionary.
struct SplitCounts {
  int64_t train_pairs = 0, train_words = 0;
  int64_t valid_pairs = 0, valid_words = 0;
  int64_t test_pairs = 0, test_words = 0;
};

// A word and its distinct pronunciations: phonemes joined by spaces, without stress.
struct Pronounced {
  std::string word;
  std::vector<std::string> pronunciations;  // at least one
};

// Reads a pronouncing dictionary in the CMU format: "word(2) P1 P2 # comment". Lines that start
// with ";;;" or "#" are comments; stress digits are removed. Words with at least one letter are
// kept, in order of first appearance. Errors name file and line: an empty file, a word without
// phonemes, a phoneme of digits only, invalid UTF-8, a NUL, a line over 1 MiB.
std::vector<Pronounced> parse_cmudict(std::string_view bytes, const std::string& name);

// Reads a dictionary and writes train.tsv, valid.tsv and test.tsv, in the format of read_pairs,
// into `folder`, which is created if missing. All pronunciations of a word are in the same part
// (part_of). Errors as parse_cmudict; also if a part would be empty or `folder` is a file.
SplitCounts split_cmudict(const std::string& dictionary, const std::string& folder);

// Path of the dictionary in Debian's package pocketsphinx-en-us.
inline constexpr const char* debian_cmudict =
    "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict";

}  // namespace attend
