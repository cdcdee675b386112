#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "attend/http/http_head.h"

namespace attend {

// Decodes the chunked body of a request (RFC 9112, 7.1).
//
// Strict like read_http_head(): a chunk size is 1 to 16 hexadecimal digits and CR LF, without an
// extension. CR LF follows each chunk and the last one, without trailers.
class ChunkedBody {
 public:
  // `size`: bytes consumed from the front of the input; `data`: the part of them that belongs to
  // the body.
  struct Piece {
    size_t size = 0;
    std::string_view data = {};
  };
  // HttpRefusal: 400, or 413 as soon as a chunk's size exceeds the limit. Nothing can be read after
  // it.
  using Reading = std::variant<HttpIncomplete, HttpRefusal, Piece>;

  // `limit`: maximum size of the decoded body in bytes.
  explicit ChunkedBody(int64_t limit) : limit_(limit) {}

  // Reads the next piece of the unread input. HttpIncomplete until more arrives. std::logic_error
  // once is_done().
  Reading read(std::string_view arrived);
  // Whether the last chunk was read.
  bool is_done() const { return expected_ == Expected::nothing; }

 private:
  enum class Expected { size, data, line_end, last_line_end, nothing };

  Reading read_size(std::string_view arrived);
  Reading read_line_end(std::string_view arrived, Expected next);

  int64_t limit_;
  int64_t decoded_ = 0;  // bytes of the body, with the whole current chunk
  uint64_t chunk_left_ = 0;
  Expected expected_ = Expected::size;
};

}  // namespace attend
