#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attend::internal {

// Characters, white space and lower case follow Python, because sacreBLEU defines BLEU and chrF.

// One string per Unicode code point. Error on invalid UTF-8, naming the byte (counted from 1).
std::vector<std::string> characters_of(std::string_view text);

// Splits at Unicode white space. Errors as characters_of().
std::vector<std::string> words_of(std::string_view text);

// Code points of a text, and back. Errors as characters_of().
std::u32string code_points_of(std::string_view text);
std::string utf8_of(const std::u32string& text);

bool is_white_space(char32_t c);

// Unicode's full lower case: a capital sigma at the end of a word becomes a final sigma. Errors as
// characters_of().
std::string lower_case(std::string_view text);

// Number of occurrences of each n-gram.
using NgramCounts = std::unordered_map<std::string, int64_t>;

// N-grams of `order` tokens, joined by `between`.
NgramCounts count_ngrams(const std::vector<std::string>& tokens, size_t order,
                         std::string_view between);

// Clipped matches: sum over n-grams of the smaller count of both.
int64_t count_matches(const NgramCounts& ngrams, const NgramCounts& reference);

// Part of the signature with the number of references per sentence; 0: varies.
std::string references_signature(int64_t references);

}  // namespace attend::internal
