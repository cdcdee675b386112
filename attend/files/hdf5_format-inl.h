#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "attend/base/error.h"

namespace attend::internal {

constexpr uint64_t no_hdf5_address = ~uint64_t{0};

// Types of the messages in an object header.
enum class Hdf5Message : uint16_t {
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  link = 0x06,
  layout = 0x08,
  filters = 0x0b,
  continuation = 0x10,
  symbol_table = 0x11,
};

// Bytes within an HDF5 file. Reads beyond them are an Error that names the file.
class Hdf5Bytes {
 public:
  Hdf5Bytes(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(&name) {}

  uint64_t size() const { return bytes_.size(); }
  const std::string& name() const { return *name_; }
  // Returns `size` bytes from `begin`.
  Hdf5Bytes part(uint64_t begin, uint64_t size) const;
  // Returns the bytes from `begin` to the end.
  Hdf5Bytes from(uint64_t begin) const;
  // Returns a little-endian number of 1 to 8 bytes.
  uint64_t number(uint64_t begin, int bytes) const;
  // Returns the text that ends before a zero byte.
  std::string text(uint64_t begin) const;
  std::string_view view() const { return bytes_; }
  // Error unless a block begins with this signature.
  void check_signature(std::string_view signature) const;

  template <class... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> format,
                           Arguments&&... arguments) const {
    fail("{}: {}", *name_, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

 private:
  std::string_view bytes_;
  const std::string* name_;
};

// Calls visit(type, data) for each message of the object header at this address, including its
// continuations. Error if the header is not of version 1.
void for_each_hdf5_message(const Hdf5Bytes& file, uint64_t address,
                           const std::function<void(Hdf5Message, const Hdf5Bytes&)>& visit);

}  // namespace attend::internal
