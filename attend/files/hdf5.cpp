#include "attend/files/hdf5.h"

#include <cstring>
#include <optional>
#include <set>

#include "attend/files/hdf5_format-inl.h"

namespace attend {
namespace {

using internal::Hdf5Bytes;
using internal::Hdf5Message;

constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);
constexpr int maximum_group_depth = 32;
constexpr size_t maximum_objects = 100'000;
constexpr uint64_t maximum_hdf5_axes = 64;

struct SymbolTable {
  uint64_t tree = 0, heap = 0;
};

std::optional<SymbolTable> symbol_table(const Hdf5Bytes& file, uint64_t address) {
  std::optional<SymbolTable> found;
  internal::for_each_hdf5_message(file, address, [&](Hdf5Message type, const Hdf5Bytes& data) {
    if (type == Hdf5Message::symbol_table)
      found = SymbolTable{data.number(0, 8), data.number(8, 8)};
    if (type == Hdf5Message::link || type == Hdf5Message::link_info)
      file.refuse("has groups of a later version; save it by h5py without libver and track_order");
  });
  return found;
}

// Collects the objects of all groups.
class Groups {
 public:
  explicit Groups(const Hdf5Bytes& file) : file_(file) {}

  void read(const SymbolTable& table, const std::string& path, int depth) {
    if (depth > maximum_group_depth) file_.refuse("has groups over {} deep", maximum_group_depth);
    const Hdf5Bytes heap = file_.from(table.heap);
    heap.check_signature("HEAP");
    const Hdf5Bytes names = file_.part(heap.number(24, 8), heap.number(8, 8));
    read_tree(table.tree, std::nullopt, names, path, depth);
  }

  std::map<std::string, uint64_t> headers;  // addresses of the datasets

 private:
  // A node has signature, type, level, entries and two siblings in 24 bytes, then a key and the
  // address of a child in turns. Children of level 0 are lists of symbols.
  void read_tree(uint64_t address, std::optional<uint64_t> level, const Hdf5Bytes& names,
                 const std::string& path, int depth) {
    count(address);
    const Hdf5Bytes node = file_.from(address);
    node.check_signature("TREE");
    const uint64_t own = node.number(5, 1), children = node.number(6, 2);
    if (node.number(4, 1) != 0 || (level && own != *level) || own > maximum_group_depth)
      file_.refuse("is damaged: a node of a group's tree has another level or type");
    for (uint64_t i = 0; i < children; ++i) {
      const uint64_t child = node.number(24 + 16 * i + 8, 8);
      if (own == 0)
        read_symbols(child, names, path, depth);
      else
        read_tree(child, own - 1, names, path, depth);
    }
  }

  void read_symbols(uint64_t address, const Hdf5Bytes& names, const std::string& path, int depth) {
    count(address);
    const Hdf5Bytes list = file_.from(address);
    list.check_signature("SNOD");
    constexpr uint64_t prefix = 8, entry_size = 40;
    const uint64_t symbols = list.number(6, 2);
    for (uint64_t i = 0; i < symbols; ++i) {
      const Hdf5Bytes entry = list.part(prefix + i * entry_size, entry_size);
      const uint64_t header = entry.number(8, 8);
      if (header == internal::no_hdf5_address) continue;  // a symbolic link
      count(header);
      const std::string own = path + names.text(entry.number(0, 8));
      if (const auto table = symbol_table(file_, header))
        read(*table, own + "/", depth + 1);
      else if (!headers.emplace(own, header).second)
        file_.refuse("has two objects {}", in_quotes(own));
    }
  }

  // Each object and node is met once, or its file would take more time than its size allows.
  void count(uint64_t address) {
    if (!met_.insert(address).second)
      file_.refuse("links the object at {} twice; only trees of groups are read", address);
    if (met_.size() > maximum_objects) file_.refuse("has over {} objects", maximum_objects);
  }

  const Hdf5Bytes& file_;
  std::set<uint64_t> met_;
};

// Contents of the header of a dataset.
struct Description {
  std::optional<std::vector<int64_t>> shape;
  std::optional<at::ScalarType> type;
  std::optional<std::string_view> data;
};

// Returns nothing for a space without data.
std::optional<std::vector<int64_t>> read_shape(const Hdf5Bytes& data) {
  const uint64_t version = data.number(0, 1), axes = data.number(1, 1);
  if (version != 1 && version != 2) data.refuse("has a dataspace of version {}", version);
  if (version == 2 && data.number(3, 1) == 2) return std::nullopt;
  if (axes > maximum_hdf5_axes)
    data.refuse("has {} axes; at most {} are read", axes, maximum_hdf5_axes);
  std::vector<int64_t> shape;
  for (uint64_t axis = 0; axis < axes; ++axis) {
    const uint64_t size = data.number((version == 1 ? 8 : 4) + 8 * axis, 8);
    if (size > static_cast<uint64_t>(INT64_MAX)) data.refuse("has an axis of {} entries", size);
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

std::optional<at::ScalarType> read_type(const Hdf5Bytes& data) {
  struct Row {
    uint64_t type_class, is_signed, size;
    at::ScalarType type;
  };
  static constexpr Row rows[] = {{1, 0, 8, at::kDouble}, {1, 0, 4, at::kFloat},
                                 {1, 0, 2, at::kHalf},   {0, 1, 8, at::kLong},
                                 {0, 1, 4, at::kInt},    {0, 0, 1, at::kByte}};
  const uint64_t type_class = data.number(0, 1) & 0xf, bits = data.number(1, 1);
  constexpr uint64_t big_endian = 0x41, is_signed = 8;
  if ((bits & big_endian) != 0) return std::nullopt;
  for (const Row& row : rows)
    if (row.type_class == type_class && row.size == data.number(4, 4) &&
        (type_class == 1 || row.is_signed == (bits & is_signed) / is_signed))
      return row.type;
  return std::nullopt;
}

// Returns the bytes of a dataset in one piece.
std::string_view read_layout(const Hdf5Bytes& file, const Hdf5Bytes& data) {
  if (data.number(0, 1) != 3) data.refuse("has a layout of version {}", data.number(0, 1));
  constexpr uint64_t compact = 0, contiguous = 1;
  const uint64_t layout = data.number(1, 1);
  if (layout == compact) return data.part(4, data.number(2, 2)).view();
  if (layout != contiguous)
    data.refuse("is stored in chunks; save it without compression and chunks");
  if (data.number(2, 8) == internal::no_hdf5_address) return {};
  return file.part(data.number(2, 8), data.number(10, 8)).view();
}

Description described(const Hdf5Bytes& file, uint64_t address, const std::string& where) {
  Description found;
  internal::for_each_hdf5_message(file, address, [&](Hdf5Message type, const Hdf5Bytes& message) {
    const Hdf5Bytes data(message.view(), where);
    if (type == Hdf5Message::dataspace) found.shape = read_shape(data);
    if (type == Hdf5Message::datatype) found.type = read_type(data);
    if (type == Hdf5Message::layout) found.data = read_layout(file, data);
    if (type == Hdf5Message::filters)
      data.refuse("is stored by filters, such as gzip; save it without compression");
  });
  return found;
}

// Returns the number of bytes of a tensor, or nothing if it exceeds `room`.
std::optional<size_t> bytes_within(const std::vector<int64_t>& shape, size_t entry, size_t room) {
  size_t bytes = entry;
  for (const int64_t size : shape) {
    if (size == 0) return 0;
    if (bytes > room / static_cast<size_t>(size)) return std::nullopt;
    bytes *= static_cast<size_t>(size);
  }
  return bytes;
}

}  // namespace

Hdf5File Hdf5File::parse(std::string bytes, const std::string& name) {
  Hdf5File result;
  result.name_ = name;
  result.bytes_ = std::move(bytes);
  const Hdf5Bytes file(result.bytes_, result.name_);
  if (!result.bytes_.starts_with(signature)) file.refuse("is not an HDF5 file");
  const uint64_t version = file.number(8, 1);
  if (version > 1)
    file.refuse("has version {} of the superblock; save it by h5py without libver", version);
  if (file.number(13, 1) != 8 || file.number(14, 1) != 8)
    file.refuse("has addresses of {} bytes; only 8 are read", file.number(13, 1));
  const uint64_t more = version == 1 ? 4 : 0;
  if (file.number(24 + more, 8) != 0) file.refuse("has data before its beginning");
  const auto root = symbol_table(file, file.number(64 + more, 8));
  if (!root) file.refuse("has no groups");
  Groups groups(file);
  groups.read(*root, "", 0);
  result.headers_ = std::move(groups.headers);
  return result;
}

std::vector<std::string> Hdf5File::names() const {
  std::vector<std::string> all;
  all.reserve(headers_.size());
  for (const auto& [name, header] : headers_) all.push_back(name);
  return all;
}

at::Tensor Hdf5File::tensor(const std::string& dataset) const {
  const auto found = headers_.find(dataset);
  if (found == headers_.end()) fail("{}: has no dataset {}", name_, in_quotes(dataset));
  const std::string where = fmt::format("{}: {}", name_, in_quotes(dataset));
  const Hdf5Bytes file(bytes_, name_);
  const Description all = described(file, found->second, where);
  if (!all.shape || !all.data) fail("{}: holds no data", where);
  if (!all.type)
    fail("{}: is of a type that is not read; float64, float32, float16, int64, int32 and uint8 are",
         where);
  const size_t entry = at::elementSize(*all.type);
  const auto bytes = bytes_within(*all.shape, entry, all.data->size());
  if (!bytes || *bytes != all.data->size())
    fail("{}: its shape [{}] and its {} bytes disagree", where, fmt::join(*all.shape, ", "),
         all.data->size());
  at::Tensor tensor = at::empty(*all.shape, *all.type);
  if (*bytes > 0) std::memcpy(tensor.data_ptr(), all.data->data(), *bytes);
  return tensor;
}

}  // namespace attend
