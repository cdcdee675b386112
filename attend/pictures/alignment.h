#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/pictures/weight_grid.h"

namespace attend {

// An attention map: which source tokens each target token attended to (Bahdanau, Cho and Bengio
// 2015, figure 3). Tokens are UTF-8 and may be characters, phonemes or words. Pictures show spaces
// and control characters as visible signs, and bytes that are not UTF-8 as U+FFFD.
struct Alignment {
  std::vector<std::string> source;        // along the top
  std::vector<std::string> target;        // down the side
  WeightGrid weights;                     // [target, source]
  std::string title = {};                 // may be empty
  std::optional<WeightGrid> scores = {};  // signed scores that the weights are shares of
};

// Error if the size of `grid` differs from the numbers of tokens.
void check_grid(const Alignment& alignment, const WeightGrid& grid);

// All functions below throw Error if the size of `weights` differs from the numbers of tokens. A
// weight that is not finite is drawn hatched, a negative one as 0. The colour scale runs from 0 to
// the least number of the form 1, 2 or 5 times a power of ten that is at least the largest weight.
// The legend shows the end of the scale.

// Maximum number of source or target tokens in a picture; more is an Error.
inline constexpr int64_t kMaximumPictureTokens = 2000;

// Returns a self-contained SVG 1.1 document: light, or dark if the viewer prefers that. Weights are
// written into cells that are large enough (up to about 30 tokens per side).
std::string alignment_svg(const Alignment& alignment);

// Returns the light picture as PNG, at two device pixels per pixel of the SVG. Characters that the
// installed fonts lack are drawn as boxes.
std::string alignment_png(const Alignment& alignment);

struct TextOptions {
  bool color = false;            // 24-bit background colours
  bool dark = true;              // colours for a dark terminal
  bool unicode = true;           // false: only ASCII, other characters as '?'
  int width = 80;                // columns of the terminal, at least 20
  int64_t maximum_tokens = 200;  // per side, at least 1; a last line reports what is left out
};

// Returns a text for the terminal, with lines that end in '
// ': a title, the source along the top, and shaded cells with weights in hundredths. A map that is
// too wide gets cells of two columns and the strongest source token at the end of each row. If that
// is still too wide, it continues below in further panels.
std::string alignment_text(const Alignment& alignment, const TextOptions& options = {});

}  // namespace attend
