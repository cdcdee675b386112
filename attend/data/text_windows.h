#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"

namespace attend {

// Tokens `first` to `end` - 1 of a text.
struct TextWindow {
  int64_t first = 0;
  int64_t end = 0;
};

// Cuts a text of `tokens` tokens into windows of `length` and shuffles them. The first cut is
// random; the first and the last window may be shorter. Every token is in one window. Cuts and
// order depend only on (seed, epoch). Error if the length is below 1.
std::vector<TextWindow> shuffled_windows(int64_t tokens, int64_t length, uint64_t seed,
                                         int64_t epoch);

// Returns a pair. Its target is a window, without EOS; its source is up to `before` tokens before
// the window.
EncodedPair window_pair(const std::vector<int64_t>& text, TextWindow window, int64_t before);

// Returns windows of `length` that cover a text in order, each with up to `before` tokens before
// it.
std::vector<EncodedPair> windows_in_order(const std::vector<int64_t>& text, int64_t length,
                                          int64_t before);

}  // namespace attend
