#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>

namespace attend::test {

// Writes HDF5 files as h5py does by default: superblock 0, groups of symbols, data in one piece.
class Hdf5Writer {
 public:
  // The file of these datasets; a slash in a name makes groups.
  static std::string format(const std::map<std::string, at::Tensor>& datasets) {
    Hdf5Writer writer;
    writer.bytes_ = std::string("\x89HDF\r\n\x1a\n", 8) + std::string(5, '\0') + "\x08\x08";
    writer.pad_to(root_entry + 40);
    const uint64_t root = writer.group(datasets);
    for (const size_t place : {size_t{32}, size_t{48}}) writer.set(place, nothing, 8);
    writer.set(40, writer.bytes_.size(), 8);
    writer.set(root_entry + 8, root, 8);
    return writer.bytes_;
  }

 private:
  static constexpr size_t root_entry = 56;
  static constexpr uint64_t nothing = ~uint64_t{0};

  static std::string number(uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
    return text;
  }
  void set(size_t place, uint64_t value, int bytes) {
    bytes_.replace(place, static_cast<size_t>(bytes), number(value, bytes));
  }
  void pad_to(size_t size) { bytes_.resize(size, '\0'); }
  uint64_t append(const std::string& block) {
    pad_to((bytes_.size() + 7) / 8 * 8);
    bytes_ += block;
    return bytes_.size() - block.size();
  }
  static std::string message(int type, std::string data) {
    data.resize((data.size() + 7) / 8 * 8, '\0');
    return number(static_cast<uint64_t>(type), 2) + number(data.size(), 2) + std::string(4, '\0') +
           data;
  }
  uint64_t header(int messages, const std::string& all) {
    return append(number(1, 2) + number(static_cast<uint64_t>(messages), 2) + number(1, 4) +
                  number(all.size(), 8) + all);
  }

  uint64_t dataset(const at::Tensor& given) {
    const at::Tensor tensor = given.contiguous();
    const auto size = static_cast<uint64_t>(tensor.element_size());
    const bool real = tensor.is_floating_point();
    const bool is_byte = tensor.scalar_type() == at::kByte;
    std::string space =
        number(1, 1) + number(static_cast<uint64_t>(tensor.dim()), 1) + std::string(6, '\0');
    for (const int64_t axis : tensor.sizes()) space += number(static_cast<uint64_t>(axis), 8);
    // Class, bits, size; the layout of bits is not read.
    const std::string type = number(real ? 0x11 : 0x10, 1) +
                             number(real      ? 0x20
                                    : is_byte ? 0
                                              : 8,
                                    1) +
                             number(0, 2) + number(size, 4) + std::string(real ? 12 : 4, '\0');
    std::string data(tensor.numel() * size, '\0');
    if (!data.empty()) std::memcpy(data.data(), tensor.data_ptr(), data.size());
    const uint64_t address = data.empty() ? nothing : append(data);
    const std::string layout =
        number(3, 1) + number(1, 1) + number(address, 8) + number(data.size(), 8);
    return header(3, message(0x01, space) + message(0x03, type) + message(0x08, layout));
  }

  uint64_t group(const std::map<std::string, at::Tensor>& datasets) {
    std::map<std::string, uint64_t> children;
    std::map<std::string, std::map<std::string, at::Tensor>> groups;
    for (const auto& [name, tensor] : datasets) {
      const size_t slash = name.find('/');
      if (slash == std::string::npos)
        children[name] = dataset(tensor);
      else
        groups[name.substr(0, slash)][name.substr(slash + 1)] = tensor;
    }
    for (const auto& [name, inner] : groups) children[name] = group(inner);
    std::string names(8, '\0'),
        symbols = "SNOD\1" + std::string(1, '\0') + number(children.size(), 2);
    for (const auto& [name, address] : children) {
      symbols += number(names.size(), 8) + number(address, 8) + std::string(24, '\0');
      names += name + '\0';
    }
    const uint64_t text = append(names);
    const uint64_t heap = append("HEAP" + std::string(4, '\0') + number(names.size(), 8) +
                                 number(nothing, 8) + number(text, 8));
    const uint64_t list = append(symbols);
    const uint64_t tree =
        append("TREE" + std::string(2, '\0') + number(1, 2) + number(nothing, 8) +
               number(nothing, 8) + number(0, 8) + number(list, 8) + number(8, 8));
    return header(1, message(0x11, number(tree, 8) + number(heap, 8)));
  }

  std::string bytes_;
};

}  // namespace attend::test
