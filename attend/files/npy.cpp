#include "attend/files/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {
namespace {

static_assert(std::endian::native == std::endian::little, "the arrays are little-endian");

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t maximum_npy_header = 65535;
constexpr size_t maximum_npy_axes = 64;

struct NpyDtype {
  std::string_view descr;
  at::ScalarType type;
};

constexpr std::array<NpyDtype, 7> npy_dtypes = {{{"<f8", at::kDouble},
                                                 {"<f4", at::kFloat},
                                                 {"<f2", at::kHalf},
                                                 {"<i8", at::kLong},
                                                 {"<i4", at::kInt},
                                                 {"|u1", at::kByte},
                                                 {"|b1", at::kBool}}};

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Reads the Python dictionary of the header:
// {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header read() {
    Header header;
    expect('{');
    while (!accept('}')) {
      read_entry(header);
      if (accept('}')) break;
      expect(',');
    }
    skip_spaces();
    if (!text_.empty()) refuse("something follows the dictionary");
    return header;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail("{}: the .npy header cannot be read: {} at {}", name_, why, in_quotes(text_));
  }

  void skip_spaces() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size()));
  }

  bool accept(char c) {
    skip_spaces();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("'{}' is missing", c));
  }

  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::string read_string() {
    skip_spaces();
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') refuse("a quoted word is missing");
    const size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) refuse("a quoted word has no end");
    std::string word(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return word;
  }

  bool read_bool() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    refuse("True or False is missing");
  }

  int64_t read_length() {
    skip_spaces();
    int64_t length = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), length);
    if (error != std::errc() || length < 0) refuse("a length is not a number that fits 64 bits");
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return length;
  }

  std::vector<int64_t> read_shape() {
    std::vector<int64_t> shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == maximum_npy_axes)
        refuse(fmt::format("more than {} axes", maximum_npy_axes));
      shape.push_back(read_length());
      if (accept(')')) {
        // In Python, (3) is a number and (3,) a tuple.
        if (shape.size() == 1) refuse("the shape is not a tuple");
        break;
      }
      expect(',');
    }
    return shape;
  }

  void read_entry(Header& header) {
    const std::string key = read_string();
    expect(':');
    if (key == "descr" && !header.descr) {
      skip_spaces();
      if (text_.starts_with('['))
        fail("{}: holds records; save each of their fields as an array of its own", name_);
      header.descr = read_string();
    } else if (key == "fortran_order" && !header.fortran_order) {
      header.fortran_order = read_bool();
    } else if (key == "shape" && !header.shape) {
      header.shape = read_shape();
    } else {
      refuse(fmt::format("key {} is unknown or comes twice", in_quotes(key)));
    }
  }

  std::string_view text_;
  const std::string& name_;
};

// Removes magic, version and header from the start of `bytes` and returns the header.
std::string_view take_header(std::string_view& bytes, const std::string& name) {
  if (!bytes.starts_with(magic))
    fail("{}: is not a .npy file; write one with numpy.save(\"array.npy\", array)", name);
  const size_t fixed = magic.size() + 2;
  if (bytes.size() < fixed) fail("{}: is truncated within its first {} bytes", name, fixed);
  const int version = static_cast<unsigned char>(bytes[magic.size()]);
  if (version < 1 || version > 3)
    fail("{}: has .npy version {}; 1, 2 and 3 can be read", name, version);
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < fixed + length_bytes)
    fail("{}: is truncated within its first {} bytes", name, fixed + length_bytes);
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + fixed, length_bytes);
  if (length > maximum_npy_header)
    fail("{}: the header is said to have {} bytes; at most {} are allowed", name, length,
         maximum_npy_header);
  bytes.remove_prefix(fixed + length_bytes);
  if (length > bytes.size())
    fail("{}: the header is said to have {} bytes, but only {} follow; the file is truncated", name,
         length, bytes.size());
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return header;
}

at::ScalarType find_npy_dtype(const std::string& descr, const std::string& name) {
  for (const NpyDtype& dtype : npy_dtypes) {
    if (dtype.descr == descr) return dtype.type;
    // One byte has no byte order: NumPy writes |, others write <.
    const bool one_byte = dtype.descr.starts_with('|') && descr.starts_with('<');
    if (one_byte && dtype.descr.substr(1) == std::string_view(descr).substr(1)) return dtype.type;
  }
  if (descr.starts_with('>'))
    fail("{}: is big-endian ({}); save array.astype(array.dtype.newbyteorder(\"<\"))", name,
         in_quotes(descr));
  std::vector<std::string_view> names;
  names.reserve(std::size(npy_dtypes));
  for (const NpyDtype& dtype : npy_dtypes) names.push_back(dtype.descr);
  fail("{}: has dtype {}; save it as one of {}", name, in_quotes(descr), fmt::join(names, ", "));
}

// Returns the size of the elements in bytes. Error if it, or the strides of an empty array,
// overflow.
size_t checked_size(const std::vector<int64_t>& shape, size_t item, const std::string& name) {
  constexpr auto limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t product = item;
  bool empty = false;
  for (const int64_t length : shape) {
    empty = empty || length == 0;
    const auto factor = static_cast<uint64_t>(std::max<int64_t>(length, 1));
    if (factor > limit / product)
      fail("{}: an array of shape ({}) does not fit any memory", name, fmt::join(shape, ", "));
    product *= factor;
  }
  return empty ? 0 : product;
}

}  // namespace

at::Tensor parse_npy(std::string_view bytes, const std::string& name) {
  const Header header = NpyHeaderReader(take_header(bytes, name), name).read();
  if (!header.descr || !header.fortran_order || !header.shape)
    fail("{}: the .npy header lacks descr, fortran_order or shape", name);
  const at::ScalarType type = find_npy_dtype(*header.descr, name);
  std::vector<int64_t> shape = *header.shape;
  const size_t size = checked_size(shape, c10::elementSize(type), name);
  if (size != bytes.size())
    fail("{}: an array of shape ({}) and dtype {} takes {} bytes, but {} follow the header", name,
         fmt::join(shape, ", "), *header.descr, size, bytes.size());
  if (type == at::kBool &&
      std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; }))
    fail("{}: a bool is neither 0 nor 1", name);
  if (*header.fortran_order) std::reverse(shape.begin(), shape.end());
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type));
  if (size > 0) std::memcpy(tensor.data_ptr(), bytes.data(), size);
  if (!*header.fortran_order) return tensor;
  std::vector<int64_t> reversed;
  for (int64_t axis = tensor.dim() - 1; axis >= 0; --axis) reversed.push_back(axis);
  return tensor.permute(reversed).contiguous();
}

at::Tensor read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

std::string format_npy(const at::Tensor& tensor) {
  if (!tensor.defined()) fail("[format_npy] the tensor is undefined");
  const auto dtype = std::find_if(
      npy_dtypes.begin(), npy_dtypes.end(),
      [&](const NpyDtype& candidate) { return candidate.type == tensor.scalar_type(); });
  if (dtype == npy_dtypes.end() || tensor.layout() != at::kStrided)
    fail("[format_npy] a {} tensor cannot be stored; convert it to float32",
         c10::toString(tensor.scalar_type()));
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", dtype->descr,
                  fmt::join(tensor.sizes(), ", "), tensor.dim() == 1 ? "," : "");
  // The format requires the data at a multiple of 64, after a line end.
  const size_t fixed = magic.size() + 4;
  const size_t padding = 64 - (fixed + header.size() + 1) % 64;
  header += std::string(padding % 64, ' ') + '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string bytes(magic);
  bytes += {'\1', '\0', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  bytes += header;
  const at::Tensor stored = tensor.detach().cpu().resolve_neg().contiguous();
  if (stored.numel() > 0)
    bytes.append(static_cast<const char*>(stored.data_ptr()), stored.nbytes());
  return bytes;
}

void write_npy(const std::string& path, const at::Tensor& tensor) {
  write_file(path, format_npy(tensor));
}

}  // namespace attend
