#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "attend/data/text_codec.h"

namespace attend {

// Text of tokens that are added one by one; equal to TextCodec::join() of all tokens. Only the last
// tokens are joined again per call, because a token's text depends only on the last few before it.
// The codec must outlive it.
class GrowingText {
 public:
  explicit GrowingText(const TextCodec& codec) : codec_(&codec) {}

  // Returns the text of all tokens; valid until the next call.
  const std::string& add(const std::string& token);

 private:
  void shorten();

  const TextCodec* codec_;
  std::string text_;
  size_t settled_ = 0;             // bytes of the text before the text of last_
  std::vector<std::string> last_;  // tokens that are joined again
};

}  // namespace attend
