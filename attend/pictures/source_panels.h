#pragma once

#include <string>

#include "attend/pictures/alignment.h"
#include "attend/pictures/source_picture.h"

namespace attend {

// Draw the source, and once more per target token, with the tokens that it attended to (Xu et al.
// 2015, figure 3) coloured by weight and the weights as tooltips. The results are a self-contained
// SVG 1.1 document and its PNG picture. Errors as alignment_svg, and if the picture does not have
// one part per source token. Also an Error if it has no size or more than 4,096 pixels per side,
// and on more than 100 target tokens.
std::string panels_svg(const Alignment& alignment, const SourcePicture& picture);
std::string panels_png(const Alignment& alignment, const SourcePicture& picture);

}  // namespace attend
