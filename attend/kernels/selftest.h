#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/kernels/attention.h"

namespace attend::kernels {

// Result of the self-test on one SIMD target.
struct SelftestFinding {
  std::string target;    // Highway's name of the target
  int64_t results = 0;   // arrays compared: contexts and gradients of each case
  int64_t failures = 0;  // results with an error above their bound
  // Result with the largest error relative to its bound:
  double error = 0;    // largest distance to the reference
  double bound = 0;    // largest permitted error
  std::string result;  // case and array, or the exception that was thrown
};

// Functions under test; replaceable in tests of the self-test.
struct SelftestPasses {
  void (*forward)(const Problem<float>&, const Result<float>&, int) = attention_forward<float>;
  void (*backward)(const Problem<float>&, const Upstream<float>&, const Gradients<float>&,
                   int) = attention_backward<float>;
};

// Runs forward and backward of each family with each normaliser and scope on every SIMD target of
// this CPU, and compares with the formulas in the next larger arithmetic. The bias and the
// magnitude of queries and keys (1, very small or very large) vary with each case and each round.
// Every round tests fp32, every third also the other storage types. A round takes about two
// seconds.
//
// The bound is twice the error of the formulas in the kernel's own arithmetic (three times for
// gradients), plus a few units in the last place. The best target comes first and is in use again
// at the end.
std::vector<SelftestFinding> selftest(int64_t rounds = 3, const SelftestPasses& passes = {});

}  // namespace attend::kernels
