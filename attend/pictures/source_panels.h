#pragma once

#include <string>

#include "attend/pictures/alignment.h"
#include "attend/pictures/source_picture.h"

namespace attend {

// The source, and once more for each target token, with the tokens that it looked at (Xu et al.
// 2015, figure 3) coloured as strongly as they weigh; pointing at one tells its weight. A
// self-contained SVG 1.1 document and its PNG picture. Error as alignment_svg, when the
// picture has not as many parts as the alignment source tokens, no size, or over 4,096 pixels per
// side, and on over 100 target tokens.
std::string panels_svg(const Alignment& alignment, const SourcePicture& picture);
std::string panels_png(const Alignment& alignment, const SourcePicture& picture);

}  // namespace attend
