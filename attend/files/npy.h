#pragma once

#include <ATen/ATen.h>

#include <string>
#include <string_view>

namespace attend {

// Reads the array of a NumPy .npy file as a contiguous tensor of the same shape. Supports versions
// 1 to 3, C and Fortran order, little-endian float64, float32, float16, int64, int32, uint8 and
// bool. Strict: exactly the three keys of the header, a header of at most 65,535 bytes, at most 64
// axes, sizes by checked multiplication, data of exactly that size. Otherwise Error, naming `name`.
at::Tensor parse_npy(std::string_view bytes, const std::string& name);
at::Tensor read_npy(const std::string& path);

// Formats a tensor as a .npy file of version 1 in C order. Error if the dtype is not listed above.
std::string format_npy(const at::Tensor& tensor);
// Crash-safe (write_file).
void write_npy(const std::string& path, const at::Tensor& tensor);

}  // namespace attend
