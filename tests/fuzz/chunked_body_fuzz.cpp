// The first byte of an input splits the rest into a first and a second arrival.
#include <string>

#include "attend/http/chunked_body.h"
#include "tests/fuzz/fuzz.h"

namespace attend::fuzz {
namespace {

constexpr int64_t limit = 100;

struct Decoded {
  std::string body;
  size_t size = 0;  // bytes read
  bool is_done = false;
  int status = 0;  // the refusal's status, 0 without

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

// Reads what it can of `bytes` after the part that was read before.
void decode(ChunkedBody& decoder, std::string_view bytes, Decoded& decoded) {
  while (!decoder.is_done() && decoded.status == 0) {
    const std::string_view arrived = bytes.substr(decoded.size);
    const auto reading = decoder.read(arrived);
    if (std::holds_alternative<HttpIncomplete>(reading)) {
      expect(arrived.size() < 18);  // waits for at most 16 digits and a carriage return
      return;
    }
    if (const auto* refusal = std::get_if<HttpRefusal>(&reading)) {
      expect((refusal->status == 400 || refusal->status == 413) && !refusal->message.empty());
      decoded.status = refusal->status;
      return;
    }
    const auto& piece = std::get<ChunkedBody::Piece>(reading);
    expect(piece.size > 0 && piece.size <= arrived.size());
    expect(piece.data.empty() || piece.data.data() == arrived.data());
    expect(piece.data.empty() || piece.data.size() == piece.size);
    decoded.size += piece.size;
    decoded.body += piece.data;
    expect(decoded.body.size() <= limit);
  }
  decoded.is_done = decoder.is_done();
}

}  // namespace
}  // namespace attend::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text(data + 1, size - 1);
  fuzz::Decoded whole, parts;
  ChunkedBody one(fuzz::limit), other(fuzz::limit);
  fuzz::decode(one, bytes, whole);
  // The same in two parts.
  fuzz::decode(other, bytes.substr(0, data[0]), parts);
  if (!other.is_done()) fuzz::decode(other, bytes, parts);
  fuzz::expect(whole == parts);
  // A fully decoded body has no extensions and no trailers.
  if (whole.is_done) fuzz::expect(bytes.substr(0, whole.size).ends_with("0\r\n\r\n"));
  return 0;
}
