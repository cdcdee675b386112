#pragma once

#include <memory>
#include <string>
#include <vector>

namespace attend::internal {

// Makes a text of tokens.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  virtual std::string decode(const std::vector<std::string>& tokens) const = 0;
};

using TokenDecoderPointer = std::shared_ptr<const TokenDecoder>;

// A space in front of each token but the first and those that begin with `prefix`, which is left
// out; with `clean_up`, none in front of punctuation and endings such as 's.
TokenDecoderPointer word_piece_decoder(std::string prefix, bool clean_up);
TokenDecoderPointer byte_level_decoder();  // bytes that are no UTF-8 together become U+FFFD
// Marks are spaces, those of the first token left out where `drop_first`.
TokenDecoderPointer metaspace_decoder(std::string mark, bool drop_first);
TokenDecoderPointer suffix_decoder(std::string suffix);  // BPEDecoder: the suffix ends a word
TokenDecoderPointer spaces_decoder();                    // a space between any two tokens
// Stands for a decoder that is not read: decode() throws Error with this message.
TokenDecoderPointer refusing_decoder(std::string message);

}  // namespace attend::internal
