#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/files/safetensors_header-inl.h"

namespace attend::internal {
namespace {

using Json = nlohmann::json;

// Handles the parser's events one by one: a tree would lose duplicate keys and have a depth chosen
// by the file. The header is {name: {field: string or [numbers]}, ...}.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  Header take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (in_array_ || depth_ >= 2) refuse("an object is nested too deep");
    if (depth_ == 1) start_member();
    ++depth_;
    return true;
  }

  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_) finish_tensor();
    if (depth_ == 1) in_metadata_ = false;
    return true;
  }

  bool key(string_t& text) override {
    if (depth_ == 1) {
      if (!names_.insert(text).second)
        fail("{}: {} is in the header twice", file_, in_quotes(text));
      name_ = text;
    } else {
      if (!fields_.insert(text).second) refuse("field " + in_quotes(text) + " is there twice");
      field_ = text;
    }
    return true;
  }

  bool string(string_t& text) override {
    if (depth_ == 2 && !in_array_ && in_metadata_) {
      header_.metadata.emplace(field_, text);
    } else if (depth_ == 2 && !in_array_ && field_ == "dtype") {
      entry_.dtype = text;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_array_ || in_metadata_ ||
        (field_ != "shape" && field_ != "data_offsets")) {
      unexpected("an array");
    }
    in_array_ = true;
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    if (field_ == "data_offsets" && offsets_.size() != 2)
      refuse("data_offsets are not two numbers");
    return true;
  }

  bool number_unsigned(number_unsigned_t number) override {
    if (!in_array_) unexpected("a number");
    std::vector<uint64_t>& numbers = field_ == "shape" ? entry_.shape : offsets_;
    if (numbers.size() >= maximum_axes) refuse("over 64 numbers in " + field_);
    numbers.push_back(number);
    return true;
  }

  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    unexpected("a number that is not a 64-bit integer");
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail("{}: the header is not valid JSON at its byte {}", file_, position);
  }

 private:
  void start_member() {
    in_metadata_ = name_ == metadata_key;
    fields_.clear();
    offsets_.clear();
    entry_ = {};
    if (header_.entries.size() >= maximum_tensors) {
      fail("{}: has over {} tensors", file_, maximum_tensors);
    }
  }

  void finish_tensor() {
    const std::set<std::string> wanted{"dtype", "shape", "data_offsets"};
    if (fields_ != wanted) refuse("the fields are not dtype, shape and data_offsets");
    entry_.name = name_;
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.entries.push_back(std::move(entry_));
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    fail("{}: {}: {}", file_, depth_ == 0 ? "header" : "header of " + in_quotes(name_), problem);
  }

  [[noreturn]] void unexpected(const std::string& what) const {
    refuse(depth_ == 2 ? fmt::format("{} cannot be {}", in_quotes(field_), what)
                       : what + " in place of an object");
  }

  const std::string& file_;
  Header header_;
  int depth_ = 0;  // open objects
  bool in_array_ = false;
  bool in_metadata_ = false;
  std::set<std::string> names_, fields_;
  std::string name_, field_;
  TensorEntry entry_;
  std::vector<uint64_t> offsets_;
};

}  // namespace

Header parse_header(std::string_view json, const std::string& name) {
  // The parser would skip a byte order mark and end the text at a NUL.
  if (!json.starts_with('{')) fail("{}: the header does not start with '{{'", name);
  if (json.find('\0') != std::string_view::npos) fail("{}: a NUL byte in the header", name);
  HeaderReader reader(name);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

}  // namespace attend::internal
