#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/kernels/attention.h"

namespace attend::kernels {

// What the self-test found on one SIMD target.
struct SelftestFinding {
  std::string target;    // Highway's name of it
  int64_t results = 0;   // arrays compared: contexts and gradients of each case
  int64_t failures = 0;  // of them, beyond their bound
  // These describe the result that came nearest to its bound, or passed it furthest.
  double error = 0;    // largest distance to the reference
  double bound = 0;    // what it may be
  std::string result;  // the case and the array, or what was thrown
};

// What is tested, for those who test the test.
struct SelftestPasses {
  void (*forward)(const Problem<float>&, const Result<float>&, int) = attention_forward<float>;
  void (*backward)(const Problem<float>&, const Upstream<float>&, const Gradients<float>&,
                   int) = attention_backward<float>;
};

// Forward and backward of each family with each normaliser and scope, on every SIMD target of this
// CPU, against the formulas in the next larger arithmetic. The bias and how large queries and keys
// are, 1, very small or very large, change with each case and go on changing with each round; fp32
// is in every round, the other numbers in every third. A round takes about two seconds.
//
// The bound is twice the error of the formulas themselves in the kernel's arithmetic, three times
// for gradients, and a few units in the last place. The best target comes first, and is in use
// again at the end.
std::vector<SelftestFinding> selftest(int64_t rounds = 3, const SelftestPasses& passes = {});

}  // namespace attend::kernels
