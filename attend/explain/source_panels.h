#pragma once

#include <cstdint>
#include <string>

#include "attend/explain/alignment.h"

namespace attend {

// A source that can be looked at: an image, whose tokens are its patches, row by row, or the
// spectrogram of a sound, whose tokens are its columns.
struct SourcePicture {
  std::string png;                // a PNG document
  int64_t height = 0, width = 0;  // of it, in pixels
  int64_t rows = 1, columns = 1;  // of tokens, which share it evenly
};

// The source, and once more for each target token, with the tokens that it looked at (Xu et al.
// 2015, figure 3) coloured as strongly as they weigh; pointing at one tells its weight. A
// self-contained SVG 1.1 document, its PNG picture and a page. Error as alignment_svg, when the
// picture has not as many parts as the alignment source tokens, no size, or over 4,096 pixels a
// side, and on over 100 target tokens.
std::string panels_svg(const Alignment& alignment, const SourcePicture& picture);
std::string panels_png(const Alignment& alignment, const SourcePicture& picture);
std::string panels_html(const Alignment& alignment, const SourcePicture& picture);

}  // namespace attend
