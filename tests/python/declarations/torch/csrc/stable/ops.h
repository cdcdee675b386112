#pragma once

#include <cstdint>
#include <optional>

#include "torch/csrc/stable/tensor.h"

namespace torch::stable {

Tensor contiguous(const Tensor& x);
Tensor transpose(const Tensor& x, int64_t axis, int64_t other);
Tensor new_empty(const Tensor& x, headeronly::IntHeaderOnlyArrayRef sizes,
                 std::optional<headeronly::ScalarType> type);
uint32_t get_num_threads();

template <class Work>
void parallel_for(int64_t begin, int64_t end, int64_t, const Work& work) {
  work(begin, end);
}

}  // namespace torch::stable
