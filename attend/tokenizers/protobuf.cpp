#include "attend/tokenizers/protobuf-inl.h"

namespace attend::internal {

uint64_t ProtobufFields::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  fail("{}: has a number of over 64 bits; this is not a SentencePiece model", file_);
}

std::string_view ProtobufFields::take(uint64_t size) {
  if (size > rest_.size())
    fail("{}: ends within a field; the file is cut off or not a SentencePiece model", file_);
  const std::string_view taken = rest_.substr(0, static_cast<size_t>(size));
  rest_.remove_prefix(taken.size());
  return taken;
}

bool ProtobufFields::next() {
  if (rest_.empty()) return false;
  const uint64_t tag = read_varint();
  number_ = tag >> 3;
  kind_ = tag & 7;
  switch (kind_) {
    case varint:
      integer_ = read_varint();
      break;
    case eight_bytes:
      bytes_ = take(8);
      break;
    case sized:
      bytes_ = take(read_varint());
      break;
    case four_bytes:
      bytes_ = take(4);
      break;
    default:
      fail("{}: has a field of kind {}; this is not a SentencePiece model", file_, kind_);
  }
  return true;
}

void ProtobufFields::require(Kind kind) const {
  if (kind_ != kind)
    fail("{}: field {} is of kind {}, not {}; this is not a SentencePiece model", file_, number_,
         kind_, static_cast<uint64_t>(kind));
}

std::string_view ProtobufFields::bytes() const {
  require(sized);
  return bytes_;
}

uint64_t ProtobufFields::integer() const {
  require(varint);
  return integer_;
}

float ProtobufFields::real() const {
  require(four_bytes);
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) bits |= uint32_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
  return std::bit_cast<float>(bits);
}

}  // namespace attend::internal
