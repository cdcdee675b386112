#pragma once

#include <cmath>
#include <cstdint>

#include "attend/base/hash.h"
#include "attend/kernels/scope.h"

namespace attend::kernels {

// Drops weights after normalisation: a weight becomes 0 with this probability, otherwise it is
// divided by 1 - probability. The choice depends only on the seed, the batch entry, the head, the
// query and the key. first_query and first_key are the positions of a part within a longer
// sequence.
struct Dropout {
  double probability = 0;  // at least 0, below 1
  uint64_t seed = 0;
  int64_t first_query = 0;
  int64_t first_key = 0;
};

// Steps of the draw: a weight is dropped if dropout_mix(row key ^ key) is below the threshold.

// Two rounds of shift and multiplication; each bit of the result depends on every bit of x.
inline uint32_t dropout_mix(uint32_t x) {
  x = (x ^ x >> 16) * 0x21f0aaadu;
  x = (x ^ x >> 15) * 0x735a2d97u;
  return x ^ x >> 15;
}

inline uint32_t dropout_row_key(const Dropout& dropout, const Row& row, int64_t heads) {
  const auto index = static_cast<uint64_t>((row.batch * heads + row.head) << 32 ^
                                           (row.query + dropout.first_query));
  return static_cast<uint32_t>(split_mix(dropout.seed * split_mix_step + index) >> 16);
}

inline uint32_t dropout_key(int64_t key) { return static_cast<uint32_t>(key) * 0x9e3779b9u; }

inline uint32_t dropout_threshold(const Dropout& dropout) {
  return static_cast<uint32_t>(std::llround(dropout.probability * 0x1p32) < 0xffffffffLL
                                   ? std::llround(dropout.probability * 0x1p32)
                                   : 0xffffffffLL);
}

// to_i = 0 or from_i / (1 - probability), depending only on the seed and first_key + i.
void drop(const Dropout& dropout, const float* from, int64_t count, float* to);
void drop(const Dropout& dropout, const double* from, int64_t count, double* to);

}  // namespace attend::kernels
