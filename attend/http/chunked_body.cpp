#include "attend/http/chunked_body.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace attend {
namespace {

constexpr size_t size_digits = 16;  // fit into 64 bits

HttpRefusal bad_size() {
  return {400, "a chunk must begin with its size, 1 to 16 hexadecimal digits and CR LF"};
}

}  // namespace

ChunkedBody::Reading ChunkedBody::read(std::string_view arrived) {
  switch (expected_) {
    case Expected::size:
      return read_size(arrived);
    case Expected::data: {
      if (arrived.empty()) return HttpIncomplete{};
      const std::string_view data = arrived.substr(0, chunk_left_);
      chunk_left_ -= data.size();
      if (chunk_left_ == 0) expected_ = Expected::line_end;
      return Piece{data.size(), data};
    }
    case Expected::line_end:
      return read_line_end(arrived, Expected::size);
    case Expected::last_line_end:
      return read_line_end(arrived, Expected::nothing);
    default:
      throw std::logic_error("the chunked body has ended");
  }
}

ChunkedBody::Reading ChunkedBody::read_size(std::string_view arrived) {
  const size_t digits =
      std::min(arrived.find_first_not_of("0123456789abcdefABCDEF"), arrived.size());
  if (digits > size_digits) return bad_size();
  const std::string_view rest = arrived.substr(digits);
  if (rest.empty() || (digits > 0 && rest == "\r")) return HttpIncomplete{};
  if (digits == 0 || !rest.starts_with("\r\n")) return bad_size();
  uint64_t size = 0;
  std::from_chars(arrived.data(), arrived.data() + digits, size, 16);
  if (size > static_cast<uint64_t>(limit_ - decoded_)) return body_too_large(limit_);
  decoded_ += static_cast<int64_t>(size);
  chunk_left_ = size;
  expected_ = size == 0 ? Expected::last_line_end : Expected::data;
  return Piece{digits + 2};
}

ChunkedBody::Reading ChunkedBody::read_line_end(std::string_view arrived, Expected next) {
  if (arrived.empty() || arrived == "\r") return HttpIncomplete{};
  if (!arrived.starts_with("\r\n")) {
    if (next == Expected::nothing)
      return HttpRefusal{400, "the last chunk must end with CR LF; the server reads no trailers"};
    return HttpRefusal{400, "a chunk must end with CR LF after the announced number of bytes"};
  }
  expected_ = next;
  return Piece{2};
}

}  // namespace attend
