#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attend/data/pairs.h"

namespace attend {

// The pairs of files that may be larger than memory, in an order that is a function of the files,
// the buffer's size, the seed and the epoch alone: the next one is drawn from a buffer of `buffer`
// pairs that is refilled from the files, which are read in their order. Each line is an example of
// its own; in two files, pairs with an empty side are skipped. buffer = 1 keeps the order. Errors
// as PairReader's, when the line is reached.
class ExampleStream {
 public:
  ExampleStream(std::vector<PairFiles> files, int64_t buffer, uint64_t seed, int64_t epoch);

  bool next(Example& example);  // false at the end

 private:
  bool read(Example& example);

  std::vector<PairFiles> files_;
  size_t next_file_ = 0;
  std::unique_ptr<PairReader> reader_;
  std::mt19937_64 random_;
  size_t buffer_size_;
  std::vector<Example> buffer_;
};

}  // namespace attend
