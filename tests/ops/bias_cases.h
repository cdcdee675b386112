#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/ops/differences.h"
#include "tests/ops/reference.h"

namespace attend::reference {

// A bias with a second implementation of its rule.
struct BiasCase {
  std::string name;
  Tensors tensors;
  std::function<Bias(const Tensors&)> make;
  // b_ij from the tensors above, float64; query is mapped and scaled, [B, H, Tq, A].
  std::function<double(const at::Tensor& query, int64_t b, int64_t h, int64_t i, int64_t j)> value;
};

// Every bias and sums of biases, for mapped queries of `depth`.
std::vector<BiasCase> bias_cases(const Sizes& sizes, int64_t depth, uint64_t seed);

}  // namespace attend::reference
