#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/pictures/alignment.h"

namespace attend {

// Draws a small attention map for pages with many maps: no numbers, no visible title (only the
// document's, for screen readers), and a fixed colour scale from 0 to 1. Weights beyond the scale
// are drawn as its ends. Light, or dark if the viewer prefers that. Errors as alignment_svg.
std::string thumbnail_svg(const Alignment& alignment);

// Draws such pictures in rows of `columns`, each under its title. Errors as alignment_svg.
std::string thumbnails_svg(const std::vector<Alignment>& maps, int64_t columns);

// Draws the colour scale of all thumbnails, with labels at its ends.
std::string thumbnail_legend_svg();

}  // namespace attend
