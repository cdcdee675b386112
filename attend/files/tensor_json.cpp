#include "attend/files/tensor_json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr int64_t maximum_json_bytes = int64_t{1} << 30;
constexpr size_t maximum_axes = 8;
constexpr double infinity = std::numeric_limits<double>::infinity();
// float64 represents every integer up to here.
constexpr double largest_whole = 9007199254740992.0;

// Builds the tensor during parsing, without a tree of values. `why()` returns the reason why it
// stopped.
class TensorBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return stop("null is not a number; write \"nan\""); }
  bool boolean(bool value) override { return add(value, at::kBool); }
  bool number_integer(number_integer_t value) override { return whole(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return whole(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(value, at::kDouble);
  }
  bool string(string_t& value) override {
    if (value == "inf") return add(infinity, at::kDouble);
    if (value == "-inf") return add(-infinity, at::kDouble);
    if (value == "nan") return add(std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    return stop(fmt::format("{} is not a number; only the strings inf, -inf and nan are",
                            in_quotes(value)));
  }
  bool binary(binary_t&) override { return stop("binary data are not a number"); }
  bool start_object(size_t) override {
    return stop("an object is not a tensor; write nested lists");
  }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override {
    if (counts_.size() == maximum_axes) return stop(fmt::format("more than {} axes", maximum_axes));
    count_element();
    if (counts_.size() == depth_) return stop("a list is next to a number");
    counts_.push_back(0);
    return true;
  }
  bool end_array() override {
    const size_t axis = counts_.size() - 1;
    const int64_t length = counts_.back();
    counts_.pop_back();
    if (length == 0 && !settle_depth(axis + 1)) return false;
    lengths_.resize(std::max(lengths_.size(), axis + 1), -1);
    if (lengths_[axis] >= 0 && lengths_[axis] != length)
      return stop(fmt::format("a list of {} is next to a list of {}", length, lengths_[axis]));
    lengths_[axis] = length;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    position_ = position;
    return stop("this is not JSON");
  }

  const std::string& why() const { return why_; }
  std::optional<size_t> position() const { return position_; }
  const std::vector<int64_t>& shape() const { return lengths_; }
  const std::vector<double>& values() const { return values_; }
  at::ScalarType dtype() const { return dtype_.value_or(at::kDouble); }

 private:
  static constexpr size_t unknown = std::numeric_limits<size_t>::max();

  bool stop(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }

  bool settle_depth(size_t depth) {
    if (depth_ == unknown) depth_ = depth;
    return depth_ == depth || stop("lists lie at different depths");
  }

  void count_element() {
    if (!counts_.empty()) ++counts_.back();
  }

  bool whole(double value) {
    return add(value, std::abs(value) < largest_whole ? at::kLong : at::kDouble);
  }

  bool add(double value, at::ScalarType dtype) {
    count_element();
    if (!settle_depth(counts_.size())) return false;
    if (dtype_ && (*dtype_ == at::kBool) != (dtype == at::kBool))
      return stop("true and false are mixed with numbers");
    if (!dtype_ || dtype == at::kDouble) dtype_ = dtype;
    values_.push_back(value);
    return true;
  }

  std::vector<int64_t> counts_;   // elements so far of the open lists
  std::vector<int64_t> lengths_;  // lengths of the lists per axis; -1: not known yet
  size_t depth_ = unknown;        // depth of the numbers
  std::vector<double> values_;
  std::optional<at::ScalarType> dtype_;
  std::string why_;
  std::optional<size_t> position_;
};

// Counts the bytes that the parser reads, to locate the byte at which the builder stops it.
struct CountingIterator {
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  const char* byte;
  size_t* position;

  reference operator*() const { return *byte; }
  CountingIterator& operator++() {
    ++byte;
    ++*position;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return byte == other.byte; }
  bool operator!=(const CountingIterator& other) const { return byte != other.byte; }
};

// Returns the line and column of a byte: "3:14".
std::string place(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;
  return fmt::format("{}:{}", lines + 1, std::max<size_t>(before.size() - line_start, 1));
}

json nested(const double*& values, at::IntArrayRef shape, at::ScalarType dtype) {
  if (shape.empty()) {
    const double value = *values++;
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (dtype == at::kBool) return value != 0;
    if (!at::isFloatingType(dtype)) return static_cast<int64_t>(value);
    return value;
  }
  json list = json::array();
  for (int64_t i = 0; i < shape[0]; ++i) list.push_back(nested(values, shape.slice(1), dtype));
  return list;
}

}  // namespace

at::Tensor parse_tensor_json(std::string_view text, const std::string& name) {
  TensorBuilder builder;
  size_t position = 0;
  const CountingIterator begin{text.data(), &position};
  const CountingIterator end{text.data() + text.size(), &position};
  if (!json::sax_parse(begin, end, &builder))
    fail("{}:{}: {}", name, place(text, builder.position().value_or(position)), builder.why());
  at::Tensor tensor = at::empty(builder.shape(), at::kDouble);
  std::copy(builder.values().begin(), builder.values().end(), tensor.data_ptr<double>());
  return tensor.to(builder.dtype());
}

at::Tensor read_tensor_json(const std::string& path) {
  return parse_tensor_json(read_file(path, maximum_json_bytes), path);
}

json tensor_json(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().cpu().to(at::kDouble).resolve_neg().contiguous();
  const double* values = flat.data_ptr<double>();
  return nested(values, tensor.sizes(), tensor.scalar_type());
}

}  // namespace attend
