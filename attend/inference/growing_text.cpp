#include "attend/inference/growing_text-inl.h"

namespace attend {
namespace {

// Number of tokens that may affect the text of the next one: bytes of one character, and a space or
// a mark between words.
constexpr size_t kept_tokens = 16;

}  // namespace

const std::string& GrowingText::add(const std::string& token) {
  last_.push_back(token);
  text_.resize(settled_);
  text_ += codec_->join(last_);
  if (last_.size() >= 2 * kept_tokens) shorten();
  return text_;
}

// The kept tokens may give another text at the beginning, e.g. after a cut inside a word or a
// character. Then the next call tries again.
void GrowingText::shorten() {
  std::vector<std::string> kept(last_.end() - kept_tokens, last_.end());
  const std::string end = codec_->join(kept);
  if (end.empty() || settled_ + end.size() > text_.size() || !text_.ends_with(end)) return;
  settled_ = text_.size() - end.size();
  last_ = std::move(kept);
}

}  // namespace attend
