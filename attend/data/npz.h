#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <string_view>

namespace attend {

using NamedTensors = std::map<std::string, at::Tensor>;

// The arrays of a NumPy .npz file by name: a ZIP archive of NAME.npy entries, stored or deflated.
// Strict: nothing else in the archive, no name twice, nothing encrypted, checksums that match, no
// more bytes in all than deflate can pack into the file, and each array as parse_npy wants it.
// Error otherwise, naming the file and the array.
NamedTensors parse_npz(std::string_view bytes, const std::string& name);
NamedTensors read_npz(const std::string& path);

// The tensors as an uncompressed .npz file, ordered by name; the same tensors give the same bytes.
std::string format_npz(const NamedTensors& tensors);
// Crash-safely (write_file).
void write_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace attend
