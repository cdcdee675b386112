#pragma once

#include <ATen/ATen.h>

#include <string>
#include <string_view>

namespace attend {

// The array of a NumPy .npy file, as a contiguous tensor of the same shape. Versions 1 to 3, stored
// in C or Fortran order, little-endian float64, float32, float16, int64, int32, uint8 and bool.
// Strict: the three keys of the header and no other, at most 65,535 bytes of it and 64 axes, sizes
// by checked multiplication, data of exactly that size. Error otherwise, naming `name`.
at::Tensor parse_npy(std::string_view bytes, const std::string& name);
at::Tensor read_npy(const std::string& path);

// The tensor as a .npy file of version 1 in C order. Error for a dtype that is not listed above.
std::string format_npy(const at::Tensor& tensor);
// Crash-safely (write_file).
void write_npy(const std::string& path, const at::Tensor& tensor);

}  // namespace attend
