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

// The parts of a unit of the double array.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of_leaf(uint32_t unit) { return unit & 0x7FFFFFFFu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FFu; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit >> 9 & 1) * 8); }

class PrecompiledNormaliser : public Normaliser {
 public:
  explicit PrecompiledNormaliser(Charsmap rules) : rules_(std::move(rules)) {}

  void apply(std::string_view text, std::string& result) const override {
    std::string replaced, changed;
    replace_all(text, replaced);
    // The rules of a file may make of characters what is none.
    result += well_formed(replaced, changed);
  }

 private:
  void replace_all(std::string_view text, std::string& result) const {
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

  static size_t grapheme_end(std::string_view text, size_t position) {
    utf8proc_int32_t state = 0;
    auto last = static_cast<utf8proc_int32_t>(next_point(text, position));
    while (position < text.size()) {
      size_t behind = position;
      const auto point = static_cast<utf8proc_int32_t>(next_point(text, behind));
      if (utf8proc_grapheme_break_stateful(last, point, &state)) break;
      last = point;
      position = behind;
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
        "{}: the trie of the rules of normalisation has {} bytes, of {} that are there; fetch the "
        "file anew",
        file, size, blob.size());
  for (size_t i = 0; i < size; i += 4) units_.push_back(little_endian(blob.substr(i)));
  replacements_ = blob.substr(size);
}

std::string_view Charsmap::replacement_at(uint32_t index) const {
  if (index >= replacements_.size()) return {};
  const std::string_view rest = std::string_view(replacements_).substr(index);
  return rest.substr(0, rest.find('\0'));
}

bool Charsmap::begins_with(char byte) const {
  if (units_.empty()) return false;
  const auto label = static_cast<unsigned char>(byte);
  const uint32_t node = offset_of(units_[0]) ^ label;
  return node < units_.size() && label_of(units_[node]) == label;
}

Charsmap::Match Charsmap::find(std::string_view text, bool first) const {
  Match match;
  if (units_.empty()) return match;
  uint32_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) break;
    const bool leaf = has_leaf(units_[node]);
    node ^= offset_of(units_[node]);
    if (node >= units_.size()) break;
    if (!leaf) continue;
    match = {i + 1, replacement_at(value_of_leaf(units_[node]))};
    if (first) break;
  }
  return match;
}

NormaliserPointer precompiled_normaliser(Charsmap rules) {
  return std::make_shared<PrecompiledNormaliser>(std::move(rules));
}

}  // namespace attend::internal
