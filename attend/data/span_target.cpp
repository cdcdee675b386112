#include "attend/data/span_target.h"

#include <cstdint>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed.h"
#include "attend/base/utf8.h"
#include "attend/text/characters.h"

namespace attend {
namespace {

// Bytes of the first `characters` of a text; empty if it has fewer.
std::optional<size_t> bytes_of(std::string_view text, int64_t characters) {
  size_t bytes = 0;
  for (; characters > 0 && bytes < text.size(); --characters) {
    utf8proc_int32_t character = 0;
    const size_t size = internal::next_character(text.substr(bytes), &character);
    bytes += size == 0 ? 1 : size;
  }
  return characters == 0 ? std::optional(bytes) : std::nullopt;
}

size_t start_of(std::string_view number, std::string_view answer, std::string_view passage) {
  const auto start = parse_number<int64_t>(trimmed(number));
  if (!start || *start < 0)
    fail("{}, after the answer, is not a number of characters from 0", in_quotes(number));
  const std::optional<size_t> begin = bytes_of(passage, *start);
  if (!begin || !passage.substr(*begin).starts_with(answer))
    fail("the answer {} is not at character {} of the passage, which has {}; correct the number",
         in_quotes(answer), *start, character_count(passage));
  return *begin;
}

}  // namespace

std::string_view span_text(std::string_view target) { return target.substr(0, target.find('\t')); }

std::optional<TextSpan> find_span(std::string_view target, std::string_view passage) {
  const std::string_view answer = span_text(target);
  if (trimmed(answer).empty()) return std::nullopt;
  if (answer.size() < target.size()) {
    const size_t begin = start_of(target.substr(answer.size() + 1), answer, passage);
    return TextSpan{begin, begin + answer.size()};
  }
  const size_t begin = passage.find(answer);
  if (begin == std::string_view::npos)
    fail("the answer {} does not occur in the passage; copy it from there to the letter",
         in_quotes(answer));
  return TextSpan{begin, begin + answer.size()};
}

}  // namespace attend
