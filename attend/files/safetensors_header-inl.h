#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

constexpr const char* metadata_key = "__metadata__";
constexpr int64_t maximum_axes = 64;
constexpr size_t maximum_tensors = 100'000;

// Description of a tensor in the header, not yet checked against the data.
struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct Header {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Parses the JSON header: the expected keys, each once and of its type. `name` is the file's name.
Header parse_header(std::string_view json, const std::string& name);

}  // namespace attend::internal
