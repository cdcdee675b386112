#pragma once

#include <ATen/ATen.h>

#include <string>

namespace attend {

// One step of a computation as text: a line of name, shape and formula, then the rows of a matrix
// [n, m] or a vector with their columns aligned, or the corners of a large one, and an empty line.
std::string step(const std::string& name, const at::Tensor& tensor,
                 const std::string& formula = "");

}  // namespace attend
