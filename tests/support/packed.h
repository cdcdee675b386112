#pragma once

#include <lzma.h>
#include <zlib.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace attend::test {

// Compresses bytes as gzip does.
inline std::string gzip(std::string_view bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2 failed");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate failed");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Compresses bytes as xz does.
inline std::string xz(std::string_view bytes) {
  std::string packed(lzma_stream_buffer_bound(bytes.size()), '\0');
  size_t size = 0;
  if (lzma_easy_buffer_encode(
          6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(bytes.data()),
          bytes.size(), reinterpret_cast<uint8_t*>(packed.data()), &size, packed.size()) != LZMA_OK)
    throw std::runtime_error("lzma_easy_buffer_encode failed");
  packed.resize(size);
  return packed;
}

}  // namespace attend::test
