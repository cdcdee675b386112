#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "attend/data/text_codec.h"

namespace attend {

// The text of tokens that are added one by one. It is that of TextCodec::join() of all, and costs
// as much as joining the last few, because the text of a token depends on the last few before it
// only. The codec must outlive it.
class GrowingText {
 public:
  explicit GrowingText(const TextCodec& codec) : codec_(&codec) {}

  // Returns the text of all tokens, which stays until the next call.
  const std::string& add(const std::string& token);

 private:
  void shorten();

  const TextCodec* codec_;
  std::string text_;
  size_t settled_ = 0;             // bytes of the text that precede that of last_
  std::vector<std::string> last_;  // tokens that are joined anew
};

}  // namespace attend
