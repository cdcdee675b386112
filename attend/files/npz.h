#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <string_view>

namespace attend {

using NamedTensors = std::map<std::string, at::Tensor>;

// Reads the arrays of a NumPy .npz file by name: a ZIP archive of NAME.npy entries, stored or
// deflated. Strict: no other or duplicate entries, no encryption, matching checksums, at most as
// many bytes in total as deflate can pack into the file, and arrays as in parse_npy. Otherwise
// Error, naming the file and the array.
NamedTensors parse_npz(std::string_view bytes, const std::string& name);
NamedTensors read_npz(const std::string& path);

// Formats tensors as an uncompressed .npz file, ordered by name; equal tensors give equal bytes.
std::string format_npz(const NamedTensors& tensors);
// Crash-safe (write_file).
void write_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace attend
