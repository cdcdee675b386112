#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/error.h"

namespace attend {

using Json = nlohmann::json;

constexpr std::string_view fetch_anew(std::string_view) { return "fetch the file anew"; }

// Parses a JSON text. Error, naming the file, if it is invalid or nested over 64 levels deep. The
// message ends with remedy_of the rest of the text, which begins with the first invalid byte.
Json parse_json(std::string_view bytes, const std::string& name,
                std::string_view (*remedy_of)(std::string_view rest) = fetch_anew);

// A value within a JSON file and its path, for messages. The file's value and name must outlive
// this object.
class JsonPosition {
 public:
  JsonPosition(const Json& value, const std::string& file) : value_(&value), file_(&file) {}

  const Json& value() const { return *value_; }
  const std::string& file() const { return *file_; }

  // Returns whether the object has that member and it is not null. Error if this is not an object.
  bool has(const char* key) const;
  JsonPosition member(const char* key) const;  // Error if missing
  // Returns the elements of an array. Error if this is not an array or has more than `maximum`
  // elements.
  std::vector<JsonPosition> list(size_t maximum = 1 << 16) const;

  // Return the value, or with `key` that member, as the given type. `otherwise` is returned if the
  // member is missing. Error on another type.
  std::string text() const;
  int64_t number() const;  // whole, 0 to 2^31 - 1
  std::string text(const char* key, std::string_view otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  int64_t number(const char* key, int64_t otherwise) const;
  double real(const char* key, double otherwise) const;  // any number

  // Throws an Error about the value at this path.
  template <class... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> format,
                           Arguments&&... arguments) const {
    fail("{}: {}{}{}", *file_, path_, path_.empty() ? "" : " ",
         fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  // Returns the row of a table that the member `type` names. Error if there is none.
  template <class Row>
  const Row& row_of_type(const std::vector<Row>& table) const {
    const JsonPosition type = member("type");
    const std::string name = type.text();
    std::string known;
    for (const Row& row : table) {
      if (row.type == name) return row;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", row.type);
    }
    type.refuse("is {}, which is not read; {} are", in_quotes(name), known);
  }

 private:
  const Json* find(const char* key) const;

  const Json* value_;
  const std::string* file_;
  std::string path_ = {};
};

}  // namespace attend
