#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/normaliser-inl.h"

namespace attend::internal {

// Compiled normalisation rules of SentencePiece: byte strings and their replacements. Layout: the
// size of a double array in bytes, the array, the replacements with a NUL after each. The double
// array (Aoe 1989) holds the strings in units of four bytes, as in Darts-clone. Every index is
// checked.
class Charsmap {
 public:
  // No rules.
  Charsmap() = default;
  // Error, naming the file, if the sizes do not match, a rule points outside the replacements, or a
  // replacement is not UTF-8.
  Charsmap(std::string_view blob, const std::string& file);

  struct Match {
    size_t size = 0;  // number of bytes to replace; 0 if no string matches
    std::string_view replacement = {};
  };
  // Returns whether no rule changes this ASCII character before another ASCII character or at the
  // end of the text.
  bool keeps(char character) const;
  Match longest(std::string_view text) const { return find(text, false); }
  Match shortest(std::string_view text) const { return find(text, true); }

 private:
  // Returns the unit of the child of `node` for a byte, or nothing.
  std::optional<uint32_t> child(uint32_t node, char byte) const;
  Match find(std::string_view text, bool first) const;
  std::string_view replacement_at(uint32_t index) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

// Applies the rules like Precompiled of PyPI's tokenizers. A grapheme of under 6 bytes is replaced
// as a whole, otherwise character by character. The rule is the one with the shortest string that
// matches at the start.
NormaliserPointer precompiled_normaliser(Charsmap rules);

}  // namespace attend::internal
