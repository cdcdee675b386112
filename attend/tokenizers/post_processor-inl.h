#pragma once

#include <cstdint>
#include <vector>

namespace attend::internal {

// What a sequence of ids is put together of: those of a text, or special ones.
struct TemplatePart {
  enum class Kind { first, second, special };
  Kind kind = Kind::first;
  int32_t type = 0;               // of its tokens
  std::vector<int32_t> ids = {};  // of special ones
};

// What stands around the tokens of one text, and of two.
struct SequenceTemplate {
  std::vector<TemplatePart> single = {{TemplatePart::Kind::first}};
  std::vector<TemplatePart> pair = {{TemplatePart::Kind::first}, {TemplatePart::Kind::second, 1}};
};

}  // namespace attend::internal
