#pragma once

#include <ATen/ATen.h>

#include <string>

namespace attend {

// Formats one step of a computation: a line with name, shape and formula, then the aligned rows of
// a matrix [n, m] or a vector, and an empty line. Large matrices show only their corners.
std::string step(const std::string& name, const at::Tensor& tensor,
                 const std::string& formula = "");

}  // namespace attend
