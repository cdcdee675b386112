#pragma once

#include <cstdint>

// Limits of the machine other than kernels::multiply_add_peak, with the vectors of the current SIMD
// target. They are the reference for other measurements. Each takes a millisecond or two.

namespace attend::bench {

// Cycles per second of one core, from a chain of dependent additions of one cycle each.
double core_frequency();

// Reads `bytes` bytes, a multiple of 64, and returns their sum as 64-bit numbers.
uint64_t read_all(const void* data, int64_t bytes);

}  // namespace attend::bench
