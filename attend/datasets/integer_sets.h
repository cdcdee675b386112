#pragma once

#include <cstdint>
#include <string>

namespace attend {

// Sets of one to `most` integers from 1 to `largest`, size and integers drawn uniformly, and their
// maxima (Lee et al. 2019, 5.1).
struct IntegerSets {
  int64_t count = 20000;  // number of sets
  int64_t maximum = 10;
  int64_t largest = 99;
  int64_t seed = 1;
};

// Writes lines "3 17 42 TAB 42". Error if a size is below 1 or the file cannot be written.
void write_integer_sets(const std::string& path, const IntegerSets& sets);

}  // namespace attend
