#pragma once

#include <string>

namespace attend {

// Draws an SVG document (UTF-8) with librsvg and returns PNG bytes, `scale` (above 0, at most 16)
// device pixels to one of the SVG. Nothing outside the document is loaded. Error when it is no SVG,
// has a document type declaration, has no size, or when the picture would pass 32,000 pixels per
// side or 2^26 in all.
std::string render_png(const std::string& svg, double scale = 2);

}  // namespace attend
