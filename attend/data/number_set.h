#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// A set of numbers or of vectors, in ascending order, so that it is the same in whichever order it
// was written: by the first number of each element, then by the second, and so on.
struct NumberSet {
  std::vector<std::string> elements;  // as they are written
  std::vector<double> numbers;        // of all of them, one element after another
  int64_t depth = 0;                  // numbers of each
};

// Reads elements between white space, the numbers of each between commas: "3 17 42",
// "0.1,0.2 3,4". Error where there are none, on what is no finite number, and on elements of unlike
// depths.
NumberSet parse_number_set(std::string_view text);

}  // namespace attend
