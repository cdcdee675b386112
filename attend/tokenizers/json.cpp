#include "attend/tokenizers/json.h"

#include <algorithm>
#include <limits>

namespace attend {
namespace {

constexpr int64_t maximum_depth = 64;

// Returns the depth of nested arrays and objects. A callback of the parser could count it, too, but
// makes parsing quadratic: after each object in an array, the parser visits all earlier elements.
int64_t depth_of(std::string_view bytes) {
  int64_t depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char character = bytes[i];
    if (character == '"')
      in_text = !in_text;
    else if (in_text)
      i += character == '\\' ? 1 : 0;
    else if (character == '[' || character == '{')
      deepest = std::max(deepest, ++depth);
    else if (character == ']' || character == '}')
      --depth;
  }
  return deepest;
}

}  // namespace

Json parse_json(std::string_view bytes, const std::string& name,
                std::string_view (*remedy_of)(std::string_view rest)) {
  // The parser would end the text at a NUL.
  if (const size_t nul = bytes.find('\0'); nul != bytes.npos)
    fail("{}: is not JSON: a NUL at byte {}; fetch the file anew", name, nul + 1);
  if (depth_of(bytes) > maximum_depth)
    fail("{}: is nested over {} deep; fetch the file anew", name, maximum_depth);
  try {
    return Json::parse(bytes.begin(), bytes.end());
  } catch (const Json::parse_error& error) {
    // Bytes count from 1. An incomplete text is invalid after its last byte.
    const size_t first = std::min(bytes.size(), error.byte - std::min<size_t>(error.byte, 1));
    fail("{}: is not JSON at byte {}; {}", name, error.byte, remedy_of(bytes.substr(first)));
  } catch (const Json::exception&) {
    fail("{}: is not JSON: it has a number out of range; fetch the file anew", name);
  }
}

const Json* JsonPosition::find(const char* key) const {
  if (!value_->is_object()) refuse("is not an object");
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonPosition::has(const char* key) const { return find(key) != nullptr; }

JsonPosition JsonPosition::member(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) refuse("has no {}", key);
  JsonPosition place(*value, *file_);
  place.path_ = path_.empty() ? key : fmt::format("{}.{}", path_, key);
  return place;
}

std::vector<JsonPosition> JsonPosition::list(size_t maximum) const {
  if (!value_->is_array()) refuse("is not an array");
  if (value_->size() > maximum) refuse("has over {} elements", maximum);
  std::vector<JsonPosition> places;
  for (const Json& element : *value_) {
    JsonPosition place(element, *file_);
    place.path_ = fmt::format("{}[{}]", path_, places.size());
    places.push_back(std::move(place));
  }
  return places;
}

std::string JsonPosition::text() const {
  if (!value_->is_string()) refuse("is not a string");
  return value_->get<std::string>();
}

int64_t JsonPosition::number() const {
  constexpr uint64_t greatest = std::numeric_limits<int32_t>::max();
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > greatest)
    refuse("is not a whole number from 0 to {}", greatest);
  return value_->get<int64_t>();
}

std::string JsonPosition::text(const char* key, std::string_view otherwise) const {
  return has(key) ? member(key).text() : std::string(otherwise);
}

bool JsonPosition::flag(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const JsonPosition place = member(key);
  if (!place.value().is_boolean()) place.refuse("is neither true nor false");
  return place.value().get<bool>();
}

double JsonPosition::real(const char* key, double otherwise) const {
  if (!has(key)) return otherwise;
  const JsonPosition place = member(key);
  if (!place.value().is_number()) place.refuse("is not a number");
  return place.value().get<double>();
}

int64_t JsonPosition::number(const char* key, int64_t otherwise) const {
  return has(key) ? member(key).number() : otherwise;
}

}  // namespace attend
