#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attend/data/pairs.h"

namespace attend {

// Reads the pairs of files that may be larger than memory, in random order. The next pair is drawn
// from a buffer of `buffer` pairs, which is refilled from the files in order. The order depends
// only on the files, the buffer size, the seed and the epoch; buffer = 1 keeps the order of the
// files. Each line is a separate example; in two files, pairs with an empty side are skipped.
// Errors as PairReader, when the line is reached.
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
