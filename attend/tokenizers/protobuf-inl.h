#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "attend/base/error.h"

namespace attend::internal {

// Walks the fields of one message of protocol buffers. A message within is bytes of its field.
class ProtobufFields {
 public:
  // The bytes and the name of the file, which stay.
  ProtobufFields(std::string_view bytes, const std::string& file) : rest_(bytes), file_(file) {}

  // Goes to the next field; false at the end. Errors name the file: a field that goes past the end,
  // or is of a kind that no message has.
  bool next();

  uint64_t number() const { return number_; }
  std::string_view rest() const { return rest_; }  // the bytes after the field
  // The value, as the kind of the field has it. Error where it is of another kind.
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
