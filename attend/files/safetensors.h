#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <string_view>

namespace attend {

// Named tensors and free-form string metadata, as one file.
struct TensorFile {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Reads a safetensors file strictly, https://github.com/huggingface/safetensors#format. The header
// has at most 100 MB, bounded JSON depth and no duplicate keys. Dtypes: F64 F32 F16 BF16 I64 I32
// I16 I8 U8 BOOL, with BOOL bytes 0 or 1. Sizes are computed by checked multiplication. Offsets are
// contiguous from 0 to the end of the file. At most 64 axes, 100,000 tensors and memory_limit()
// bytes. Otherwise Error, naming the file and the tensor.
TensorFile read_safetensors(const std::string& path);

// Parses the bytes of a file; messages call it `name`.
TensorFile parse_safetensors(std::string_view bytes, const std::string& name);

// Returns the bytes of the file: contiguous tensors, ordered by name, with their values on the CPU.
// Error on another dtype or layout, a name or metadata that is not UTF-8, or the name
// "__metadata__".
std::string format_safetensors(const TensorFile& file);

// Writes crash-safely (write_file). Errors of format_safetensors and write_file.
void write_safetensors(const std::string& path, const TensorFile& file);

}  // namespace attend
