#pragma once

#include <string>

#include "attend/explain/grid-inl.h"

namespace attend {

// Where the parts of the SVG lie, in its pixels.
struct PictureLayout {
  double left, top;  // the map's corner
  double cell_width, cell_height;
  double width, height;        // the whole picture
  double font;                 // size of the labels
  double angle;                // of the source labels: 0, -45 or -90 degrees
  int64_t label_every_column;  // every n-th token is named
  int64_t label_every_row;
};

PictureLayout picture_layout(const Alignment& alignment, const Grid& grid);

// `extra` is SVG put on top of the map.
std::string picture_svg(const Alignment& alignment, const Grid& grid, const PictureLayout& layout,
                        const std::string& extra);

}  // namespace attend
