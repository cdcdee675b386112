#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

namespace attend {

// Sizes of a tensor for messages: "[2, 3]", or "undefined".
inline std::string shape_of(const at::Tensor& x) {
  return x.defined() ? fmt::format("[{}]", fmt::join(x.sizes(), ", ")) : "undefined";
}

}  // namespace attend
