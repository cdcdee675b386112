#include "attend/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/memory.h"
#include "attend/files/safetensors_header-inl.h"

namespace attend {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr uint64_t maximum_header = 100'000'000;
constexpr size_t length_bytes = 8;

struct Dtype {
  std::string_view name;
  at::ScalarType type;
};

constexpr std::array<Dtype, 10> dtypes = {{{"F64", at::kDouble},
                                           {"F32", at::kFloat},
                                           {"F16", at::kHalf},
                                           {"BF16", at::kBFloat16},
                                           {"I64", at::kLong},
                                           {"I32", at::kInt},
                                           {"I16", at::kShort},
                                           {"I8", at::kChar},
                                           {"U8", at::kByte},
                                           {"BOOL", at::kBool}}};

// Returns the header length of a file of `size` bytes that starts with `begin`.
uint64_t header_length(std::string_view begin, uint64_t size, const std::string& name) {
  if (begin.size() < length_bytes) {
    fail("{}: has {} bytes, which is too short for a safetensors file", name, size);
  }
  if (begin.substr(0, length_bytes) == "version ") {
    fail("{}: is a pointer of Git LFS, not the weights; fetch them: git lfs pull", name);
  }
  uint64_t length = 0;
  std::memcpy(&length, begin.data(), length_bytes);
  if (length > maximum_header) {
    fail("{}: the header is said to have {} bytes; at most {} are allowed", name, length,
         maximum_header);
  }
  if (length > size - length_bytes) {
    fail("{}: the header is said to have {} bytes, but only {} follow; the file is truncated", name,
         length, size - length_bytes);
  }
  return length;
}

// Checks the header length before memory for the whole file is allocated.
void check_begin(const std::string& path) {
  InputFile file(path);
  std::array<char, length_bytes> begin = {};
  const size_t count = file.read(begin.data(), begin.size());
  header_length({begin.data(), count}, static_cast<uint64_t>(file.size()), path);
}

at::ScalarType find_dtype(const internal::TensorEntry& entry, const std::string& where) {
  for (const Dtype& dtype : dtypes) {
    if (dtype.name == entry.dtype) return dtype.type;
  }
  fail("{}: unknown dtype {}", where, in_quotes(entry.dtype));
}

// Returns the size of the elements in bytes. Error if it, or the strides of an empty tensor,
// overflow.
uint64_t checked_size(const internal::TensorEntry& entry, size_t item, const std::string& where) {
  constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
  uint64_t product = item;
  bool empty = false;
  for (const uint64_t size : entry.shape) {
    empty = empty || size == 0;
    const uint64_t factor = std::max<uint64_t>(size, 1);
    if (factor > limit / product) fail("{}: the shape overflows", where);
    product *= factor;
  }
  return empty ? 0 : product;
}

at::Tensor read_tensor(const internal::TensorEntry& entry, std::string_view data,
                       const std::string& where) {
  const at::ScalarType type = find_dtype(entry, where);
  const uint64_t size = checked_size(entry, c10::elementSize(type), where);
  if (entry.end - entry.begin != size) {
    fail("{}: the shape needs {} bytes, but data_offsets give {}", where, size,
         entry.end - entry.begin);
  }
  const std::string_view values = data.substr(entry.begin, size);
  if (type == at::kBool &&
      std::any_of(values.begin(), values.end(), [](char c) { return c != 0 && c != 1; })) {
    fail("{}: a BOOL is neither 0 nor 1", where);
  }
  const std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type));
  if (size > 0) std::memcpy(tensor.data_ptr(), values.data(), size);
  return tensor;
}

// The tensors must tile the data: no gap, no overlap, no trailing bytes.
void check_offsets(const std::vector<internal::TensorEntry>& entries, uint64_t data_size,
                   const std::string& name) {
  std::vector<const internal::TensorEntry*> ordered;
  ordered.reserve(entries.size());
  for (const auto& entry : entries) ordered.push_back(&entry);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t position = 0;
  for (const auto* entry : ordered) {
    const std::string where = fmt::format("{}: tensor {}", name, in_quotes(entry->name));
    if (entry->begin > entry->end) fail("{}: data_offsets run backwards", where);
    if (entry->begin < position) fail("{}: overlaps another tensor", where);
    if (entry->begin > position) {
      fail("{}: leaves a gap of {} bytes before it", where, entry->begin - position);
    }
    if (entry->end > data_size) {
      fail("{}: ends at byte {} of {} bytes of data; the file is truncated", where, entry->end,
           data_size);
    }
    position = entry->end;
  }
  if (position != data_size) {
    fail("{}: {} bytes follow the last tensor", name, data_size - position);
  }
}

std::string_view dtype_name(const at::Tensor& tensor, const std::string& where) {
  for (const Dtype& dtype : dtypes) {
    if (dtype.type == tensor.scalar_type()) return dtype.name;
  }
  fail("{}: dtype {} cannot be stored", where, c10::toString(tensor.scalar_type()));
}

at::Tensor storable(const std::string& name, const at::Tensor& tensor, const std::string& where) {
  if (name == internal::metadata_key) fail("{}: the name is reserved", where);
  if (!tensor.defined()) fail("{}: is undefined", where);
  if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
    fail("{}: only dense tensors can be stored", where);
  }
  if (tensor.dim() > internal::maximum_axes) {
    fail("{}: has {} axes; at most {} can be stored", where, tensor.dim(), internal::maximum_axes);
  }
  return tensor.detach().cpu().resolve_neg().contiguous();
}

}  // namespace

TensorFile parse_safetensors(std::string_view bytes, const std::string& name) {
  const std::string_view header =
      bytes.substr(std::min(length_bytes, bytes.size()), header_length(bytes, bytes.size(), name));
  const std::string_view data = bytes.substr(length_bytes + header.size());
  internal::Header parsed = internal::parse_header(header, name);
  check_offsets(parsed.entries, data.size(), name);
  TensorFile file;
  file.metadata = std::move(parsed.metadata);
  for (const internal::TensorEntry& entry : parsed.entries) {
    const std::string where = fmt::format("{}: tensor {}", name, in_quotes(entry.name));
    file.tensors.emplace(entry.name, read_tensor(entry, data, where));
  }
  return file;
}

TensorFile read_safetensors(const std::string& path) {
  check_begin(path);
  return parse_safetensors(read_file(path, memory_limit()), path);
}

std::string format_safetensors(const TensorFile& file) {
  nlohmann::json header = nlohmann::json::object();
  std::vector<at::Tensor> tensors;
  size_t position = 0;
  if (!file.metadata.empty()) header[internal::metadata_key] = file.metadata;
  for (const auto& [name, tensor] : file.tensors) {
    const std::string where = fmt::format("[format_safetensors] tensor {}", in_quotes(name));
    tensors.push_back(storable(name, tensor, where));
    const size_t end = position + tensors.back().nbytes();
    header[name] = {{"dtype", dtype_name(tensor, where)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail("[format_safetensors] a name or metadata is not UTF-8");
  }
  // The format allows spaces after the header for alignment of the data.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  if (length > maximum_header || file.tensors.size() > internal::maximum_tensors) {
    fail("[format_safetensors] {} tensors with a header of {} bytes; at most {} and {} fit",
         file.tensors.size(), length, internal::maximum_tensors, maximum_header);
  }
  std::string bytes(reinterpret_cast<const char*>(&length), length_bytes);
  bytes.reserve(length_bytes + text.size() + position);
  bytes += text;
  for (const at::Tensor& tensor : tensors) {
    bytes.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  }
  return bytes;
}

void write_safetensors(const std::string& path, const TensorFile& file) {
  write_file(path, format_safetensors(file));
}

}  // namespace attend
