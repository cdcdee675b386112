#pragma once

#include <string>

namespace attend {

// Draws an SVG document (UTF-8) with librsvg and returns PNG bytes, at `scale` (above 0, at most
// 16) device pixels per pixel of the SVG. Loads nothing outside the document. Error if it is not
// SVG, has a document type declaration or no size, or if the picture would exceed 32,000 pixels per
// side or 2^26 in all.
std::string render_png(const std::string& svg, double scale = 2);

}  // namespace attend
