#include "attend/data/text_windows.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/random.h"

namespace attend {
namespace {

// Cuts the text at `first_cut`, and then after every `length` tokens.
std::vector<TextWindow> cut(int64_t tokens, int64_t length, int64_t first_cut) {
  std::vector<TextWindow> windows;
  windows.reserve(static_cast<size_t>(tokens / length + 2));
  int64_t first = 0;
  for (int64_t end = first_cut > 0 ? first_cut : length; first < tokens; end += length) {
    windows.push_back({first, std::min(end, tokens)});
    first = end;
  }
  return windows;
}

void check(int64_t length) {
  if (length < 1) fail("[text windows] of {} tokens; at least 1 is wanted", length);
}

}  // namespace

std::vector<TextWindow> shuffled_windows(int64_t tokens, int64_t length, uint64_t seed,
                                         int64_t epoch) {
  check(length);
  std::mt19937_64 random = internal::generator(seed, epoch);
  const auto first_cut =
      static_cast<int64_t>(internal::draw_below(static_cast<uint64_t>(length), random));
  std::vector<TextWindow> windows = cut(tokens, length, first_cut);
  internal::shuffle(windows, random);
  return windows;
}

EncodedPair window_pair(const std::vector<int64_t>& text, TextWindow window, int64_t before) {
  const auto token_at = [&](int64_t place) { return text.begin() + place; };
  return {.source = {token_at(std::max<int64_t>(window.first - before, 0)), token_at(window.first)},
          .target = {token_at(window.first), token_at(window.end)},
          .no_eos = true};
}

std::vector<EncodedPair> windows_in_order(const std::vector<int64_t>& text, int64_t length,
                                          int64_t before) {
  check(length);
  const std::vector<TextWindow> windows = cut(static_cast<int64_t>(text.size()), length, 0);
  std::vector<EncodedPair> pairs;
  pairs.reserve(windows.size());
  for (const TextWindow& window : windows) pairs.push_back(window_pair(text, window, before));
  return pairs;
}

}  // namespace attend
