#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/pictures/weight_grid.h"

namespace attend {

// One attention map: which source tokens each target token looked at (Bahdanau, Cho and Bengio
// 2015, figure 3). Tokens are UTF-8 and may be characters, phonemes or words; the pictures show
// spaces and control characters as visible signs, bytes that are no UTF-8 as U+FFFD.
struct Alignment {
  std::vector<std::string> source;        // along the top
  std::vector<std::string> target;        // down the side
  WeightGrid weights;                     // [target, source]
  std::string title = {};                 // may be empty
  std::optional<WeightGrid> scores = {};  // what the weights are the shares of, with its signs
};

// Error where the sizes of `grid` are not those of the tokens.
void check_grid(const Alignment& alignment, const WeightGrid& grid);

// All functions below throw Error when the sizes of `weights` are not those of the tokens.
// A weight that is not finite is drawn hatched, a negative one as 0. The colour scale runs from 0
// to 1, or to the first of ..., 0.1, 0.2, 0.5, 1, 2, 5, ... that holds the largest weight; the
// legend says which.

// The largest number of source or of target tokens that a picture shows; more is an Error.
inline constexpr int64_t kMaximumPictureTokens = 2000;

// A self-contained SVG 1.1 document: light, or dark where the viewer prefers that. Weights are
// written into the cells while these are large enough (up to about 30 tokens per side).
std::string alignment_svg(const Alignment& alignment);

// The light picture as PNG, at two device pixels to one pixel of the SVG. Tokens outside the
// installed fonts are drawn as boxes.
std::string alignment_png(const Alignment& alignment);

struct TextOptions {
  bool color = false;            // 24-bit background colours
  bool dark = true;              // colours for a dark terminal
  bool unicode = true;           // false: ASCII alone, other characters shown as '?'
  int width = 80;                // columns of the terminal, at least 20
  int64_t maximum_tokens = 200;  // per side, at least 1; a last line says what is left out
};

// For the terminal, lines ending in '\n': a title, the source along the top, shaded cells with
// their weights in hundredths. A map that is too wide for that gets cells of two columns with the
// strongest source token at the end of each row, and then continues below in further panels.
std::string alignment_text(const Alignment& alignment, const TextOptions& options = {});

}  // namespace attend
