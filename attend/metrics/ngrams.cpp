#include <utf8proc.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/metrics/ngrams-inl.h"

namespace attend::internal {
namespace {

using CodePoint = utf8proc_int32_t;

// Calls `take(code point, its bytes)` for each code point in order.
template <class Take>
void each_code_point(std::string_view text, const Take& take) {
  for (size_t position = 0; position < text.size();) {
    CodePoint character = 0;
    const auto size = static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size() - position, 4));
    const utf8proc_ssize_t length = utf8proc_iterate(
        reinterpret_cast<const utf8proc_uint8_t*>(text.data() + position), size, &character);
    if (length <= 0)
      fail("invalid UTF-8 at byte {} (0x{:02x}); save the text as UTF-8", position + 1,
           static_cast<unsigned char>(text[position]));
    take(character, text.substr(position, static_cast<size_t>(length)));
    position += static_cast<size_t>(length);
  }
}

bool is_cased(CodePoint c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

// Characters that may occur between a letter and the end of its word.
bool is_case_ignorable(CodePoint c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x387 || c == 0x2018 ||
             c == 0x2019 || c == 0x2024 || c == 0x2027;
  }
}

// Final_Sigma of the Unicode standard, table 3-17.
bool ends_word(const std::vector<CodePoint>& text, size_t index) {
  size_t before = index;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = index + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append(std::string& text, CodePoint c) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(c, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c >= 0x1C && c <= 0x1F) return true;  // ASCII separators
  return (c >= '\t' && c <= '\r') || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  characters.reserve(text.size());
  each_code_point(text, [&](CodePoint, std::string_view bytes) { characters.emplace_back(bytes); });
  return characters;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool within = false;
  each_code_point(text, [&](CodePoint c, std::string_view bytes) {
    const bool space = is_white_space(static_cast<char32_t>(c));
    if (!space && !within) words.emplace_back();
    if (!space) words.back() += bytes;
    within = !space;
  });
  return words;
}

std::u32string code_points_of(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  each_code_point(text,
                  [&](CodePoint c, std::string_view) { characters += static_cast<char32_t>(c); });
  return characters;
}

std::string utf8_of(const std::u32string& text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t c : text) append(bytes, static_cast<CodePoint>(c));
  return bytes;
}

std::string lower_case(std::string_view text) {
  constexpr CodePoint capital_sigma = 0x3A3, sigma = 0x3C3, final_sigma = 0x3C2;
  constexpr CodePoint dotted_capital_i = 0x130;
  std::vector<CodePoint> characters;
  characters.reserve(text.size());
  each_code_point(text, [&](CodePoint c, std::string_view) { characters.push_back(c); });
  std::string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < characters.size(); ++i) {
    const CodePoint c = characters[i];
    if (c == capital_sigma)
      append(lower, ends_word(characters, i) ? final_sigma : sigma);
    else if (c == dotted_capital_i)
      lower += "i\xCC\x87";  // no other lower case has two code points
    else
      append(lower, utf8proc_tolower(c));
  }
  return lower;
}

NgramCounts count_ngrams(const std::vector<std::string>& tokens, size_t order,
                         std::string_view between) {
  NgramCounts counts;
  for (size_t first = 0; first + order <= tokens.size(); ++first) {
    std::string ngram = tokens[first];
    for (size_t i = 1; i < order; ++i) ngram.append(between).append(tokens[first + i]);
    ++counts[std::move(ngram)];
  }
  return counts;
}

int64_t count_matches(const NgramCounts& ngrams, const NgramCounts& reference) {
  int64_t matches = 0;
  for (const auto& [ngram, count] : ngrams) {
    const auto found = reference.find(ngram);
    if (found != reference.end()) matches += std::min(count, found->second);
  }
  return matches;
}

std::string references_signature(int64_t references) {
  return references == 0 ? "nrefs:var" : fmt::format("nrefs:{}", references);
}

}  // namespace attend::internal
