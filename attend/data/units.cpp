#include "attend/data/units.h"

#include <unordered_map>

#include "attend/base/error.h"
#include "attend/data/characters-inl.h"

namespace attend {
namespace {

using internal::white_space;

std::string byte_name(unsigned char byte) {
  if (byte > ' ' && byte < 0x7f) return std::string(1, static_cast<char>(byte));
  return fmt::format("<0x{:02X}>", byte);
}

// What a model puts together need not be UTF-8.
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
      text += token;  // <unk>
    else
      text += found->second;
  }
  return valid_utf8(text);
}

}  // namespace

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
  size_t first = text.find_first_not_of(white_space);
  while (first != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(white_space, first), text.size());
    words.push_back(text.substr(first, end - first));
    first = text.find_first_not_of(white_space, end);
  }
  return words;
}

std::vector<std::string> split_units(std::string_view text, Units units, NormalForm form) {
  const std::string normal = normalised(text, form);
  if (units == Units::character) return split_characters(normal);
  std::vector<std::string> tokens;
  if (units == Units::byte) {
    tokens.reserve(normal.size());
    for (const char byte : normal) tokens.push_back(byte_name(static_cast<unsigned char>(byte)));
    return tokens;
  }
  const auto words = split_words(normal);
  if (words.empty()) return {};
  if (units == Units::line) return {std::string(words.front().begin(), words.back().end())};
  return {words.begin(), words.end()};
}

std::string join_units(const std::vector<std::string>& tokens, Units units) {
  if (units == Units::byte) return join_bytes(tokens);
  return fmt::format("{}", fmt::join(tokens, units == Units::space ? " " : ""));
}

}  // namespace attend
