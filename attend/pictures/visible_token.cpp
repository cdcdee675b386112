#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr int32_t kReplacement = 0xFFFD;

struct CodePoint {
  int32_t value;
  size_t bytes;
};

CodePoint next_code_point(std::string_view text) {
  utf8proc_int32_t value = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &value);
  if (bytes < 1) return {kReplacement, 1};
  return {value, static_cast<size_t>(bytes)};
}

void append(std::string& text, int32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto count = utf8proc_encode_char(code_point, bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(count));
}

// These reorder the text around them: a hostile token could disguise its neighbours.
bool is_bidi_control(int32_t c) {
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x200E ||
         c == 0x200F || c == 0x061C;
}

int32_t visible_code_point(int32_t c) {
  // Arrows, which most fonts have, unlike the control pictures.
  if (c == '\t') return 0x21E5;
  if (c == '\n' || c == 0x2028 || c == 0x2029) return 0x21B5;
  if (c < 0x20) return 0x2400 + c;  // the block of control pictures
  if (c == 0x7F) return 0x2421;
  if (c >= 0x80 && c < 0xA0) return kReplacement;
  if ((c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF)) return kReplacement;
  if (is_bidi_control(c)) return kReplacement;
  return c;
}

bool is_space(int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_ZS; }

bool is_combining(int32_t c) {
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

std::vector<int32_t> visible_code_points(std::string_view text) {
  std::vector<int32_t> points;
  while (!text.empty()) {
    const CodePoint point = next_code_point(text);
    points.push_back(visible_code_point(point.value));
    text.remove_prefix(point.bytes);
  }
  return points;
}

// Advance widths of DejaVu Sans 2.37 for U+0020 to U+007E, in hundredths of the size.
constexpr std::array<uint8_t, 95> kAdvances = {
    32, 40, 46, 84, 64, 95, 78, 28, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 78, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 70, 64, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 64, 55, 64, 61, 35, 64,
    63, 28, 28, 58, 28, 97, 63, 61, 64,  64, 41, 52, 39, 63, 59, 82, 59, 59, 53, 64, 34, 64, 84};

}  // namespace

std::vector<Cluster> clusters(std::string_view text) {
  std::vector<Cluster> result;
  utf8proc_int32_t state = 0;
  int32_t previous = 0;
  while (!text.empty()) {
    const CodePoint point = next_code_point(text);
    if (result.empty() || utf8proc_grapheme_break_stateful(previous, point.value, &state)) {
      result.push_back({"", 0});
    }
    Cluster& cluster = result.back();
    cluster.bytes.append(text.substr(0, point.bytes));
    // Joined emoji and jamo take the space of one.
    cluster.columns = std::min(2, cluster.columns + utf8proc_charwidth(point.value));
    previous = point.value;
    text.remove_prefix(point.bytes);
  }
  return result;
}

int columns(std::string_view text) {
  int sum = 0;
  for (const Cluster& cluster : clusters(text)) sum += cluster.columns;
  return sum;
}

std::string visible_text(std::string_view text) {
  std::string result;
  for (const int32_t point : visible_code_points(text)) append(result, point);
  return result;
}

std::string visible_token(std::string_view token) {
  std::vector<int32_t> points = visible_code_points(token);
  const auto first = std::find_if_not(points.begin(), points.end(), is_space);
  std::fill(points.begin(), first, 0x2423);
  const auto last = std::find_if_not(points.rbegin(), points.rend(), is_space);
  std::fill(points.rbegin(), last, 0x2423);
  std::string result;
  if (!points.empty() && is_combining(points.front())) append(result, 0x25CC);
  for (const int32_t point : points) append(result, point);
  if (!result.empty() && columns(result) == 0) return fmt::format("U+{:04X}", points.front());
  return result;
}

std::string shorten(std::string_view text, int maximum_columns, std::string_view ellipsis) {
  const std::vector<Cluster> parts = clusters(text);
  int total = 0;
  for (const Cluster& part : parts) total += part.columns;
  if (total <= maximum_columns) return std::string(text);
  const int room = maximum_columns - columns(ellipsis);
  std::string result;
  int used = 0;
  for (const Cluster& part : parts) {
    if (used + part.columns > room) break;
    used += part.columns;
    result += part.bytes;
  }
  return result.append(ellipsis);
}

double estimated_width(std::string_view text, double size) {
  double hundredths = 0;
  for (const Cluster& cluster : clusters(text)) {
    const auto c = static_cast<unsigned char>(cluster.bytes.front());
    if (c >= 0x20 && c < 0x7F) {
      hundredths += kAdvances[c - 0x20];
    } else {
      hundredths += cluster.columns == 2 ? 100 : 68 * cluster.columns;
    }
  }
  return hundredths * size / 100;
}

}  // namespace attend
