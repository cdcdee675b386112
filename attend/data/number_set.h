#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// A set of numbers or of vectors, independent of the order in the text: elements ascend by the
// first number, then by the second, and so on.
struct NumberSet {
  std::vector<std::string> elements;  // as written
  std::vector<double> numbers;        // numbers of all elements, concatenated
  int64_t depth = 0;                  // numbers per element
};

constexpr std::string_view set_separators =
    "blanks separate elements, commas the numbers of an element";

// Reads elements separated by white space, the numbers of each separated by commas: "3 17 42",
// "0.1,0.2 3,4". Error if the text lacks elements, a number is invalid or not finite, or elements
// differ in depth.
NumberSet parse_number_set(std::string_view text);

}  // namespace attend
