#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "attend/base/error.h"

namespace attend::internal {

// Iterates over the fields of one protocol buffer message. A nested message is a field of bytes.
class ProtobufFields {
 public:
  // `bytes` and `file` (name of the file) must outlive this object.
  ProtobufFields(std::string_view bytes, const std::string& file) : rest_(bytes), file_(file) {}

  // Advances to the next field; false at the end. Errors name the file: a field that extends past
  // the end, or an unknown wire type.
  bool next();

  uint64_t number() const { return number_; }
  std::string_view rest() const { return rest_; }  // the bytes after the field
  // Return the value of the field. Error if its wire type does not match.
  std::string_view bytes() const;
  uint64_t integer() const;
  float real() const;

 private:
  enum Kind : uint64_t { varint = 0, eight_bytes = 1, sized = 2, four_bytes = 5 };

  uint64_t read_varint();
  std::string_view take(uint64_t size);
  void require(Kind kind) const;

  std::string_view rest_;
  const std::string& file_;
  uint64_t number_ = 0, kind_ = 0, integer_ = 0;
  std::string_view bytes_;
};

}  // namespace attend::internal
