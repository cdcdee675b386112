#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/normaliser-inl.h"

namespace attend::internal {

// SentencePiece's compiled rules of normalisation: byte strings and what replaces them. The strings
// are in a double array (Aoe 1989) as Darts-clone lays it out, four bytes a unit: the size of the
// array in bytes, the array, the replacements, each with a NUL behind it. Every index is checked.
class Charsmap {
 public:
  // Without rules.
  Charsmap() = default;
  // Error, naming the file, where the sizes do not fit, a rule points outside of the replacements,
  // or these are not UTF-8.
  Charsmap(std::string_view blob, const std::string& file);

  struct Match {
    size_t size = 0;  // bytes of the text that are replaced; 0 where no string fits
    std::string_view replacement = {};
  };
  // Returns whether no rule changes the ASCII character where another one or the end of the text
  // follows it.
  bool keeps(char character) const;
  Match longest(std::string_view text) const { return find(text, false); }
  Match shortest(std::string_view text) const { return find(text, true); }

 private:
  // The unit behind a byte of the children at `node`, or nothing.
  std::optional<uint32_t> child(uint32_t node, char byte) const;
  Match find(std::string_view text, bool first) const;
  std::string_view replacement_at(uint32_t index) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

// What the Precompiled of PyPI's tokenizers does with the rules: a grapheme of under 6 bytes as a
// whole, or else its characters, become what replaces the shortest string that they begin with.
NormaliserPointer precompiled_normaliser(Charsmap rules);

}  // namespace attend::internal
