#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace attend::test {

// Writes fields of protocol buffers.
class ModelWriter {
 public:
  ModelWriter& integer(uint64_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  ModelWriter& bytes(uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  ModelWriter& real(uint64_t field, float value) {
    varint(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) text_ += static_cast<char>(bits >> shift & 0xFF);
    return *this;
  }
  // A SentencePiece piece: field 1 of the model.
  ModelWriter& piece(std::string_view text, float score, uint64_t kind = 1) {
    return bytes(1, ModelWriter().bytes(1, text).real(2, score).integer(3, kind).text());
  }
  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

}  // namespace attend::test
