#pragma once

namespace attend::kernels {

// Processor time that the calling thread has used, in seconds.
double processor_seconds();

// fp32 operations per second of one core with the vectors of the current SIMD target; a
// multiply-add counts as two. Measures independent chains of multiply-adds in registers, the best
// of several bursts of processor time. Takes a few milliseconds.
double multiply_add_peak();

}  // namespace attend::kernels
