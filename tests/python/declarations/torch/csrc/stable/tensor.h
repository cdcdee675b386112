#pragma once

// The part of PyTorch's stable ABI that python/shim/operators.cpp uses, as declarations: the shim
// is compiled in tests without PyTorch. `./dev wheel` compiles it with PyTorch's own headers.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "torch/headeronly/core/ScalarType.h"

namespace torch::headeronly {

class IntHeaderOnlyArrayRef {
 public:
  IntHeaderOnlyArrayRef(const std::vector<int64_t>& numbers);
  size_t size() const;
  int64_t operator[](size_t index) const;
};

}  // namespace torch::headeronly

namespace torch::stable {

class Tensor {
 public:
  void* data_ptr() const;
  int64_t dim() const;
  int64_t size(int64_t axis) const;
  int64_t stride(int64_t axis) const;
  headeronly::IntHeaderOnlyArrayRef sizes() const;
  headeronly::IntHeaderOnlyArrayRef strides() const;
  bool is_contiguous() const;
  bool is_cpu() const;
  headeronly::ScalarType scalar_type() const;
};

}  // namespace torch::stable
