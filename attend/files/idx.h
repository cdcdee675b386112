#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// An array of bytes as in the MNIST files: images [count, height, width], labels [count].
struct IdxArray {
  std::vector<int64_t> shape;
  std::string bytes;  // the last axis varies fastest

  // Number of bytes per entry of the first axis.
  int64_t entry_size() const;
  std::string_view entry(int64_t index) const;  // Error if the index is out of range
};

// Reads an IDX file, packed by gzip or xz or not. Errors name the file: errors of read_packed, data
// other than unsigned bytes in one to three axes, no entries, a size that does not match the shape.
IdxArray read_idx(const std::string& path);

// Parses the bytes of a file; messages call it `name`.
IdxArray parse_idx(std::string bytes, const std::string& name);

// Returns the bytes of an IDX file.
std::string idx_bytes(const IdxArray& array);

}  // namespace attend
