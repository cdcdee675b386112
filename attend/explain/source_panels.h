#pragma once

#include <cstdint>
#include <string>

#include "attend/explain/alignment.h"

namespace attend {

// A source that can be looked at: an image, whose symbols are its patches, row by row, or the
// spectrogram of a sound, whose symbols are its columns.
struct SourcePicture {
  std::string png;                // a PNG document
  int64_t height = 0, width = 0;  // of it, in pixels
  int64_t rows = 1, columns = 1;  // of symbols, which share it evenly
};

// The source, and once more for each target symbol, with the symbols that it looked at (Xu et al.
// 2015, figure 3) coloured as strongly as they weigh; pointing at one tells its weight. A
// self-contained SVG 1.1 document, its PNG picture and a page. Error as alignment_svg, when the
// picture has not as many parts as the alignment source symbols, no size, or over 4,096 pixels a
// side, and on over 100 target symbols.
std::string panels_svg(const Alignment& alignment, const SourcePicture& picture);
std::string panels_png(const Alignment& alignment, const SourcePicture& picture);
std::string panels_html(const Alignment& alignment, const SourcePicture& picture);

}  // namespace attend
