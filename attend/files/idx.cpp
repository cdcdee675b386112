#include "attend/files/idx.h"

#include "attend/base/error.h"
#include "attend/files/compressed.h"

namespace attend {
namespace {

constexpr char unsigned_bytes = 0x08;
constexpr int64_t maximum_idx_bytes = int64_t{1} << 31;

int64_t big_endian(std::string_view bytes) {
  int64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

int64_t IdxArray::entry_size() const {
  int64_t size = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) size *= shape[axis];
  return size;
}

std::string_view IdxArray::entry(int64_t index) const {
  if (index < 0 || index >= shape[0])
    fail("index {} is not one of the {} entries, which are counted from 0", index, shape[0]);
  const auto size = static_cast<size_t>(entry_size());
  return std::string_view(bytes).substr(static_cast<size_t>(index) * size, size);
}

IdxArray parse_idx(std::string bytes, const std::string& name) {
  const std::string_view view = bytes;
  if (view.size() < 4 || view[0] != 0 || view[1] != 0)
    fail("{}: is not an IDX file, which begins with two zero bytes, its type and its axes", name);
  if (view[2] != unsigned_bytes)
    fail("{}: holds IDX type 0x{:02x}; only unsigned bytes (0x08) are read", name,
         static_cast<unsigned char>(view[2]));
  const auto axes = static_cast<size_t>(static_cast<unsigned char>(view[3]));
  if (axes < 1 || axes > 3) fail("{}: has {} axes; labels have 1 and images 3", name, axes);
  const size_t header = 4 + 4 * axes;
  if (view.size() < header) fail("{}: ends within its header, after {} bytes", name, view.size());
  IdxArray array;
  int64_t size = 1;
  for (size_t axis = 0; axis < axes; ++axis) {
    array.shape.push_back(big_endian(view.substr(4 + 4 * axis, 4)));
    if (array.shape.back() == 0) fail("{}: is empty: axis {} has no entries", name, axis);
    // Both factors are below 2^32; the product fits.
    size *= array.shape.back();
    if (size > maximum_idx_bytes)
      fail("{}: its shape needs over {} bytes; split the file", name, maximum_idx_bytes);
  }
  if (static_cast<int64_t>(view.size() - header) != size)
    fail("{}: its shape [{}] takes {} bytes and {} follow; is the file cut off?", name,
         fmt::join(array.shape, ", "), size, view.size() - header);
  bytes.erase(0, header);
  array.bytes = std::move(bytes);
  return array;
}

IdxArray read_idx(const std::string& path) {
  return parse_idx(read_packed(path, maximum_idx_bytes + 16), path);
}

std::string idx_bytes(const IdxArray& array) {
  std::string bytes = {0, 0, unsigned_bytes, static_cast<char>(array.shape.size())};
  for (const int64_t size : array.shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xff);
  return bytes + array.bytes;
}

}  // namespace attend
