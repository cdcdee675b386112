#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "attend/base/error.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/charsmap-inl.h"

namespace attend::internal {
namespace {

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

// Fields of a unit of the double array.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
bool is_value(uint32_t unit) { return unit >> 31 != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFFu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FFu; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit >> 9 & 1) * 8); }

class PrecompiledNormaliser : public Normaliser {
 public:
  explicit PrecompiledNormaliser(Charsmap rules) : rules_(std::move(rules)) {}

  void apply(std::string_view text, std::string& result) const override {
    size_t begin = 0;
    for (size_t end; begin < text.size(); begin = end) {
      end = grapheme_end(text, begin);
      const std::string_view grapheme = text.substr(begin, end - begin);
      constexpr size_t longest_whole = 5;
      if (grapheme.size() <= longest_whole && replace(grapheme, result)) continue;
      for (size_t position = 0; position < grapheme.size();) {
        const size_t size = character_size(grapheme[position]);
        const std::string_view character = grapheme.substr(position, size);
        if (!replace(character, result)) result += character;
        position += size;
      }
    }
  }

 private:
  static size_t grapheme_end(std::string_view text, size_t position) {
    utf8proc_int32_t state = 0;
    auto last = static_cast<utf8proc_int32_t>(next_point(text, position));
    while (position < text.size()) {
      size_t after = position;
      const auto point = static_cast<utf8proc_int32_t>(next_point(text, after));
      if (utf8proc_grapheme_break_stateful(last, point, &state)) break;
      last = point;
      position = after;
    }
    return position;
  }

  bool replace(std::string_view text, std::string& result) const {
    const Charsmap::Match match = rules_.shortest(text);
    result += match.replacement;
    return match.size > 0;
  }

  Charsmap rules_;
};

}  // namespace

Charsmap::Charsmap(std::string_view blob, const std::string& file) {
  if (blob.size() < 4)
    fail("{}: the rules of normalisation are cut off; fetch the file anew", file);
  const uint32_t size = little_endian(blob);
  blob.remove_prefix(4);
  if (size > blob.size() || size % 4 != 0 || size == 0)
    fail(
        "{}: the trie of the rules of normalisation has {} bytes, and the file has {}; fetch the "
        "file anew",
        file, size, blob.size());
  for (size_t i = 0; i < size; i += 4) units_.push_back(little_endian(blob.substr(i)));
  replacements_ = blob.substr(size);
  if (!is_well_formed(replacements_))
    fail("{}: the rules of normalisation make what is not UTF-8; fetch the file anew", file);
  const auto begins_replacement = [&](size_t index) {
    return index < replacements_.size() && (index == 0 || replacements_[index - 1] == '\0');
  };
  for (const uint32_t unit : units_)
    if (is_value(unit) && !begins_replacement(value_of(unit)))
      fail(
          "{}: a rule of normalisation points to {}, which is not the start of a replacement; "
          "fetch the file anew",
          file, value_of(unit));
}

std::string_view Charsmap::replacement_at(uint32_t index) const {
  const std::string_view rest = std::string_view(replacements_).substr(index);
  return rest.substr(0, rest.find('\0'));
}

std::optional<uint32_t> Charsmap::child(uint32_t node, char byte) const {
  const auto label = static_cast<unsigned char>(byte);
  node ^= label;
  if (label == 0 || node >= units_.size() || label_of(units_[node]) != label) return std::nullopt;
  return units_[node];
}

bool Charsmap::keeps(char character) const {
  if (units_.empty()) return true;
  const uint32_t root = offset_of(units_[0]);
  const std::optional<uint32_t> unit = child(root, character);
  if (!unit) return true;
  if (has_leaf(*unit)) return false;
  const uint32_t after = (root ^ static_cast<unsigned char>(character)) ^ offset_of(*unit);
  for (int next = 1; next < 128; ++next)
    if (child(after, static_cast<char>(next))) return false;
  return true;
}

Charsmap::Match Charsmap::find(std::string_view text, bool first) const {
  Match match;
  if (units_.empty()) return match;
  uint32_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const std::optional<uint32_t> unit = child(node, text[i]);
    if (!unit) break;
    node ^= static_cast<unsigned char>(text[i]) ^ offset_of(*unit);
    if (node >= units_.size()) break;
    if (!has_leaf(*unit) || !is_value(units_[node])) continue;
    match = {i + 1, replacement_at(value_of(units_[node]))};
    if (first) break;
  }
  return match;
}

NormaliserPointer precompiled_normaliser(Charsmap rules) {
  return std::make_shared<PrecompiledNormaliser>(std::move(rules));
}

}  // namespace attend::internal
