#include "attend/text/units.h"

#include <unordered_map>

#include "attend/base/error.h"
#include "attend/text/characters.h"
#include "attend/text/smiles.h"

namespace attend {
namespace {

using internal::blank_characters;

std::string byte_name(unsigned char byte) {
  if (byte > ' ' && byte < 0x7f) return std::string(1, static_cast<char>(byte));
  return fmt::format("<0x{:02X}>", byte);
}

// The output of a model may be invalid UTF-8.
std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  bool replaced = false;
  while (!bytes.empty()) {
    utf8proc_int32_t character = 0;
    const size_t length = internal::next_character(bytes, &character);
    if (length > 0) text += bytes.substr(0, length);
    if (length == 0 && !replaced) text += "\uFFFD";
    replaced = length == 0;
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

std::string join_bytes(const std::vector<std::string>& tokens) {
  static const auto bytes = [] {
    std::unordered_map<std::string, char> all;
    for (int byte = 0; byte < 256; ++byte)
      all.emplace(byte_name(static_cast<unsigned char>(byte)), static_cast<char>(byte));
    return all;
  }();
  std::string text;
  for (const std::string& token : tokens) {
    const auto found = bytes.find(token);
    if (found == bytes.end())
      text += token;  // such as <unk>
    else
      text += found->second;
  }
  return valid_utf8(text);
}

std::vector<std::string> words_of(std::string_view text) {
  const auto words = split_words(text);
  return {words.begin(), words.end()};
}

std::vector<std::string> whole_text(std::string_view text) {
  const auto words = split_words(text);
  if (words.empty()) return {};
  return {std::string(words.front().begin(), words.back().end())};
}

std::vector<std::string> bytes_of(std::string_view text) {
  std::vector<std::string> tokens;
  tokens.reserve(text.size());
  for (const char byte : text) tokens.push_back(byte_name(static_cast<unsigned char>(byte)));
  return tokens;
}

std::string side_by_side(const std::vector<std::string>& tokens) {
  return fmt::format("{}", fmt::join(tokens, ""));
}

std::string with_spaces(const std::vector<std::string>& tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

struct UnitsRow {
  std::vector<std::string> (*split)(std::string_view text);  // the text is in normal form
  std::string (*join)(const std::vector<std::string>& tokens);
  bool keeps_letters = false;
  bool may_refuse = false;
};

const UnitsRow& row_of(Units units) {
  static const UnitsRow table[] = {
      {split_characters, side_by_side},
      {words_of, with_spaces},
      {whole_text, side_by_side, /*keeps_letters=*/true},
      {bytes_of, join_bytes},
      {split_smiles, side_by_side, /*keeps_letters=*/true, /*may_refuse=*/true}};
  return table[static_cast<size_t>(units)];
}

}  // namespace

bool keeps_letters(Units units) { return row_of(units).keeps_letters; }

bool may_refuse(Units units) { return row_of(units).may_refuse; }

std::vector<std::string> byte_names() {
  std::vector<std::string> names;
  names.reserve(256);
  for (int byte = 0; byte < 256; ++byte)
    names.push_back(byte_name(static_cast<unsigned char>(byte)));
  return names;
}

std::vector<std::string> split_characters(std::string_view text) {
  internal::check_characters(text);
  std::vector<std::string> characters;
  while (!text.empty()) {
    utf8proc_int32_t character = 0;
    const size_t length = internal::next_character(text, &character);
    characters.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return characters;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t first = text.find_first_not_of(blank_characters);
  while (first != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(blank_characters, first), text.size());
    words.push_back(text.substr(first, end - first));
    first = text.find_first_not_of(blank_characters, end);
  }
  return words;
}

std::vector<std::string> split_units(std::string_view text, Units units, NormalForm form) {
  return row_of(units).split(normalised(text, form));
}

std::string join_units(const std::vector<std::string>& tokens, Units units) {
  return row_of(units).join(tokens);
}

}  // namespace attend
