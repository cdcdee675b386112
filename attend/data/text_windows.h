#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"

namespace attend {

// Tokens `first` up to, but not with, `end` of a text.
struct TextWindow {
  int64_t first = 0;
  int64_t end = 0;
};

// A text of so many tokens cut into windows of `length`, shuffled. The first cut is anywhere, so
// that the first and the last window may be shorter; every token is in one. Cuts and order are a
// function of (seed, epoch) alone. Error on a length below 1.
std::vector<TextWindow> shuffled_windows(int64_t tokens, int64_t length, uint64_t seed,
                                         int64_t epoch);

// A pair whose target is a window, without EOS, and whose source is up to `before` tokens in front
// of it.
EncodedPair window_pair(const std::vector<int64_t>& text, TextWindow window, int64_t before);

// All of a text in order: windows of `length`, each with `before` tokens in front of it.
std::vector<EncodedPair> windows_in_order(const std::vector<int64_t>& text, int64_t length,
                                          int64_t before);

}  // namespace attend
