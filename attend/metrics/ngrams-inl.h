#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attend::internal {

// For BLEU and chrF, characters, white space and lower case are those of Python, in which
// sacreBLEU, their definition, is written.

// One string per Unicode code point. Error on invalid UTF-8, naming the byte (counted from 1).
std::vector<std::string> characters_of(std::string_view text);

// The runs between Unicode's white space. Errors as characters_of.
std::vector<std::string> words_of(std::string_view text);

// The code points of a text, and back. Errors as characters_of.
std::u32string code_points_of(std::string_view text);
std::string utf8_of(const std::u32string& text);

bool is_white_space(char32_t c);

// Unicode's full lower case: a capital sigma at the end of a word becomes a final one. Errors as
// characters_of.
std::string lower_case(std::string_view text);

// How often each n-gram of a sequence occurs.
using NgramCounts = std::unordered_map<std::string, int64_t>;

// The n-grams of `order` tokens, joined by `between`.
NgramCounts count_ngrams(const std::vector<std::string>& tokens, size_t order,
                         std::string_view between);

// Occurrences in `ngrams` that `reference` has too, each of its own counted once.
int64_t count_matches(const NgramCounts& ngrams, const NgramCounts& reference);

// The signature's part that counts the references of a sentence; 0 means that the number varies.
std::string references_signature(int64_t references);

}  // namespace attend::internal
