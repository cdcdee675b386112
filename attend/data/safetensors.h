#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

namespace attend {

// Named tensors and free-form string metadata, as one file.
struct TensorFile {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Reads a safetensors file strictly: header of at most 100 MB, JSON depth bounded, no duplicate
// keys, known dtypes (F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL), sizes by checked multiplication,
// offsets in order, contiguous from 0 to the end of the file. Error otherwise, naming the file and
// the tensor.
TensorFile read_safetensors(const std::string& path);

// Writes crash-safely (write_file). Tensors are stored contiguous on the CPU, ordered by name.
void write_safetensors(const std::string& path, const TensorFile& file);

}  // namespace attend
