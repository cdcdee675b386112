#pragma once

namespace attend::kernels {

// Processor time that the calling thread has used, in seconds.
double processor_seconds();

// The fp32 operations a second that one core can do with the vectors of the SIMD target chosen now,
// a multiply-add counted as two: independent chains of multiply-adds in registers, the best of
// several bursts of processor time. Takes a few milliseconds.
double multiply_add_peak();

}  // namespace attend::kernels
