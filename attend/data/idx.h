#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// An array of bytes as the MNIST files hold it: images [count, height, width], labels [count].
struct IdxArray {
  std::vector<int64_t> shape;
  std::string bytes;  // the last axis varies fastest

  // The bytes of one entry of the first axis.
  int64_t entry_size() const;
  std::string_view entry(int64_t index) const;  // Error where the index is out of range
};

// Reads an IDX file, packed by gzip or xz or not. Errors name the file: those of read_packed,
// anything but unsigned bytes in one to three axes, no entries, a size that is not that of the
// shape.
IdxArray read_idx(const std::string& path);

// The same for the bytes of a file; messages call it `name`.
IdxArray parse_idx(std::string bytes, const std::string& name);

// The bytes of such a file.
std::string idx_bytes(const IdxArray& array);

}  // namespace attend
