#pragma once

#include <memory>
#include <string>
#include <vector>

namespace attend::internal {

// Converts tokens to a text.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  virtual std::string decode(const std::vector<std::string>& tokens) const = 0;
};

using TokenDecoderPointer = std::shared_ptr<const TokenDecoder>;

// Puts a space before each token, except the first and tokens that begin with `prefix`; removes the
// prefix. With `clean_up`, no space is put before punctuation and endings such as 's.
TokenDecoderPointer word_piece_decoder(std::string prefix, bool clean_up);
TokenDecoderPointer byte_level_decoder();  // invalid UTF-8 becomes U+FFFD
// Replaces marks by spaces. With `drop_first`, drops marks of the first token.
TokenDecoderPointer metaspace_decoder(std::string mark, bool drop_first);
TokenDecoderPointer suffix_decoder(std::string suffix);  // BPEDecoder: the suffix ends a word
TokenDecoderPointer spaces_decoder();                    // joins tokens with spaces
// Placeholder for an unsupported decoder: decode() throws Error with this message.
TokenDecoderPointer refusing_decoder(std::string message);

}  // namespace attend::internal
