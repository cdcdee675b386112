#pragma once

#include <cstdint>

// What the machine itself can do beside kernels::multiply_add_peak, with the vectors of the SIMD
// target chosen now: the measure of everything else. Each takes a millisecond or two.

namespace attend::bench {

// Cycles per second of one core: a chain of additions, each of which waits a cycle for the last.
double core_frequency();

// Reads every byte, a multiple of 64 of them, and returns their sum as 64-bit numbers.
uint64_t read_all(const void* data, int64_t bytes);

}  // namespace attend::bench
