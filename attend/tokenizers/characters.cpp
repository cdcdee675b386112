#include <algorithm>
#include <map>

#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/unicode_tables-inl.h"

namespace attend::internal {
namespace {

constexpr size_t block_size = 256;
constexpr char32_t code_points = 0x110000;
constexpr char32_t dotted_capital_i = 0x130;

void set_flag(std::vector<uint16_t>& flags, std::span<const PointStep> steps, uint16_t flag) {
  size_t point = 0;
  for (const PointStep& step : steps) {
    point += step.gap;
    for (const size_t end = point + step.count; point < end; ++point) flags[point] |= flag;
  }
}

std::vector<uint16_t> all_flags() {
  std::vector<uint16_t> flags(code_points);
  set_flag(flags, bert_removed_steps, bert_removed);
  set_flag(flags, bert_space_steps, bert_space);
  set_flag(flags, bert_cjk_steps, bert_cjk);
  set_flag(flags, bert_mark_steps, bert_mark);
  set_flag(flags, bert_punctuation_steps, bert_punctuation);
  set_flag(flags, white_space_steps, white_space);
  set_flag(flags, letter_steps, letter);
  set_flag(flags, number_steps, number);
  set_flag(flags, regex_space_steps, regex_space);
  set_flag(flags, word_character_steps, word_character);
  set_flag(flags, combining_steps, combining);
  set_flag(flags, nfd_changes_steps, nfd_changes);
  set_flag(flags, untouched_steps, untouched);
  for (const LowerRange& range : lower_ranges)
    for (char32_t point = range.first; point <= range.last; point += range.step)
      flags[point] |= has_lower;
  flags[dotted_capital_i] |= has_lower;
  return flags;
}

char32_t lower_of(char32_t point) {
  const auto after =
      std::upper_bound(lower_ranges.begin(), lower_ranges.end(), point,
                       [](char32_t p, const LowerRange& range) { return p < range.first; });
  return static_cast<char32_t>(static_cast<int32_t>(point) + std::prev(after)->difference);
}

// Returns the bytes of the first character of a non-empty text and sets `whole`; or the bytes that
// one U+FFFD replaces, without `whole`.
size_t front_size(std::string_view text, bool& whole) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  whole = lead < 0x80;
  if (lead < 0xC2 || lead > 0xF4) return 1;
  const size_t size = character_size(text[0]);
  // The second byte reveals overlong forms, surrogates and points beyond U+10FFFF.
  const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char greatest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return i;
    if (i == 1 ? byte(i) < least || byte(i) > greatest : (byte(i) & 0xC0) != 0x80) return i;
  }
  whole = true;
  return size;
}

// Returns the size of the well-formed prefix.
size_t well_formed_size(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    if (is_ascii(text[position])) {
      ++position;
      continue;
    }
    bool whole = false;
    const size_t size = front_size(text.substr(position), whole);
    if (!whole) break;
    position += size;
  }
  return position;
}

}  // namespace

CharacterClasses::CharacterClasses() {
  const std::vector<uint16_t> flags = all_flags();
  std::map<std::vector<uint16_t>, uint16_t> known;
  for (size_t block = 0; block < index_.size(); ++block) {
    const auto begin = flags.begin() + static_cast<int64_t>(block * block_size);
    const std::vector<uint16_t> values(begin, begin + block_size);
    const auto [row, is_new] = known.emplace(values, static_cast<uint16_t>(known.size()));
    index_[block] = row->second;
    if (is_new) blocks_.insert(blocks_.end(), values.begin(), values.end());
  }
}

const CharacterClasses& character_classes() {
  static const CharacterClasses table;
  return table;
}

void append_point(std::string& text, char32_t point) {
  const auto add = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

void append_lower(std::string& text, char32_t point) {
  if (!is(point, has_lower)) return append_point(text, point);
  if (point != dotted_capital_i) return append_point(text, lower_of(point));
  append_point(text, U'i');
  append_point(text, U'\u0307');
}

bool is_well_formed(std::string_view text) { return well_formed_size(text) == text.size(); }

std::string_view front_character(std::string_view text) {
  bool whole = false;
  const size_t size = front_size(text, whole);
  return whole ? text.substr(0, size) : std::string_view();
}

std::string_view well_formed(std::string_view text, std::string& changed) {
  if (is_well_formed(text)) return text;
  changed.clear();
  while (!text.empty()) {
    const size_t good = well_formed_size(text);
    changed += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    bool whole = false;
    text.remove_prefix(front_size(text, whole));
    append_point(changed, U'\uFFFD');
  }
  return changed;
}

}  // namespace attend::internal
