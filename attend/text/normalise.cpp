#include "attend/text/normalise.h"

#include <array>
#include <cstdlib>
#include <memory>

#include "attend/base/error.h"
#include "attend/text/characters.h"

namespace attend {
namespace {

// utf8proc sorts a run of combining marks by insertion, in quadratic time.
constexpr int maximum_marks = 1000;

bool all_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_mark(utf8proc_int32_t character) {
  const utf8proc_property_t* property = utf8proc_get_property(character);
  // U+0F73 has class 0 but decomposes into two marks that are sorted; the class is not enough.
  return property->combining_class != 0 || property->category == UTF8PROC_CATEGORY_MN ||
         property->category == UTF8PROC_CATEGORY_MC || property->category == UTF8PROC_CATEGORY_ME;
}

// Returns the options of utf8proc for a form.
int option_of(NormalForm form) {
  switch (form) {
    case NormalForm::nfc:
      return UTF8PROC_COMPOSE;
    case NormalForm::nfd:
      return UTF8PROC_DECOMPOSE;
    case NormalForm::nfkc:
      return UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::none:
      break;
  }
  return 0;
}

}  // namespace

void internal::check_characters(std::string_view text) {
  if (all_ascii(text)) return;
  int marks = 0;
  for (size_t position = 0; position < text.size();) {
    utf8proc_int32_t character = 0;
    const size_t length = next_character(text.substr(position), &character);
    if (length == 0) {
      fail("invalid UTF-8 at byte {} (0x{:02x}); save the text as UTF-8", position + 1,
           static_cast<unsigned char>(text[position]));
    }
    marks = is_mark(character) ? marks + 1 : 0;
    if (marks > maximum_marks) {
      fail("over {} combining marks in a row at byte {}; this is not text", maximum_marks,
           position + 1);
    }
    position += length;
  }
}

std::string normalised(std::string_view text, NormalForm form) {
  if (all_ascii(text)) return std::string(text);
  internal::check_characters(text);
  if (form == NormalForm::none) return std::string(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | option_of(form)));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (size < 0) fail("text cannot be normalised: {}", utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

std::string to_lower(std::string_view text, NormalForm form) {
  internal::check_characters(text);
  std::string lower;
  lower.reserve(text.size());
  while (!text.empty()) {
    utf8proc_int32_t character = 0;
    text.remove_prefix(internal::next_character(text, &character));
    std::array<utf8proc_uint8_t, 4> bytes;
    const auto size = utf8proc_encode_char(utf8proc_tolower(character), bytes.data());
    lower.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
  }
  // An upper-case letter may compose with a mark that its lower-case letter does not compose with.
  return normalised(lower, form);
}

}  // namespace attend
