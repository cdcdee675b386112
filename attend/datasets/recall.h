#pragma once

#include <cstdint>
#include <string>

namespace attend {

// Associative recall (Ba et al. 2016, 4.1; Arora et al. 2023): pairs of a key and a value, then
// queries, each a key of the pairs. Keys of a line are different; values and queries are uniform.
struct Recall {
  int64_t count = 20000;    // lines
  int64_t pairs = 64;       // maximum number of pairs per line
  int64_t least_pairs = 0;  // minimum, drawn uniformly up to the maximum; 0: the maximum
  int64_t queries = 1;
  int64_t vocabulary = 64;  // number of different keys, and of values
  int64_t seed = 1;
};

// Writes lines "k7 v3 k1 v9 k1 TAB v9", with more queries "... k1 TAB v9 k7 v3". Error if a size is
// below 1, the pairs need more keys, or the file cannot be written.
void write_recall(const std::string& path, const Recall& recall);

}  // namespace attend
