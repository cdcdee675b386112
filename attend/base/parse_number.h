#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace attend {

// Parses the whole text as a number with std::from_chars. Returns nullopt if it is not one.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || stop != end || error != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace attend
