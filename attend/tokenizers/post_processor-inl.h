#pragma once

#include <cstdint>
#include <vector>

namespace attend::internal {

// A part of a sequence of ids: the ids of a text, or special ids.
struct TemplatePart {
  enum class Kind { first, second, special };
  Kind kind = Kind::first;
  int32_t type = 0;               // type id of its tokens
  std::vector<int32_t> ids = {};  // only for special ids
};

// Arrangement of the special tokens around one text, and around two.
struct SequenceTemplate {
  std::vector<TemplatePart> single = {{TemplatePart::Kind::first}};
  std::vector<TemplatePart> pair = {{TemplatePart::Kind::first}, {TemplatePart::Kind::second, 1}};
};

}  // namespace attend::internal
