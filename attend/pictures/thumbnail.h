#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/pictures/alignment.h"

namespace attend {

// A small picture of an attention map for pages that show many: no numbers, no title of its own
// (the document's is for screen readers), a fixed colour scale from 0 to 1, beyond which weights
// are drawn as its ends. Light, or dark where the viewer prefers that. Error as alignment_svg.
std::string thumbnail_svg(const Alignment& alignment);

// Such pictures in rows of `columns`, each under its title. Error as alignment_svg.
std::string thumbnails_svg(const std::vector<Alignment>& maps, int64_t columns);

// The colour scale of all thumbnails, with its ends named.
std::string thumbnail_legend_svg();

}  // namespace attend
