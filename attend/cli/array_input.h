#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace attend {

// An array that the command line names.
struct ArrayInput {
  std::string origin;  // the file, or the option with a number
  at::Tensor tensor;
  bool is_json;
};

// Reads a .npy or .json file. Error if the name has another suffix; `option` is named.
ArrayInput read_input(const std::string& path, const char* option);

// The dtype of the .npy files; float64 if there are none. Error, with both names, if they differ or
// are not floating-point.
at::ScalarType common_dtype(const std::vector<const ArrayInput*>& inputs);

// Converts an array to a dtype. Error if it holds true and false.
at::Tensor as_numbers(const ArrayInput& input, at::ScalarType dtype);

// Error unless `out` is empty or the name of an .npz file.
void check_results_name(const std::string& out);

// NumPy's name: "float32".
std::string dtype_name(at::ScalarType type);

}  // namespace attend
