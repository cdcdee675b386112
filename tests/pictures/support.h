#pragma once

#include <cairo.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "attend/pictures/alignment.h"

namespace attend {

// Two target and three source tokens, with weights that are not exact in float.
inline Alignment small_alignment() {
  return {{"t", "i", "o"}, {"SH", "AH0"}, {2, 3, {0.7f, 0.2f, 0.1f, 0.05f, 0.35f, 0.6f}}, "tion"};
}

inline WeightGrid zeros(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
}

inline WeightGrid identity(int64_t side) {
  WeightGrid grid = zeros(side, side);
  for (int64_t i = 0; i < side; ++i) grid.values[static_cast<size_t>(i * side + i)] = 1;
  return grid;
}

struct Pixels {
  int width = 0;
  int height = 0;
};

// The size of a PNG; 0 x 0 if it cannot be decoded.
inline Pixels decode_png(std::string_view bytes) {
  const auto read = [](void* rest, unsigned char* data, unsigned int length) {
    auto& view = *static_cast<std::string_view*>(rest);
    if (view.size() < length) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(data, view.data(), length);
    view.remove_prefix(length);
    return CAIRO_STATUS_SUCCESS;
  };
  cairo_surface_t* surface = cairo_image_surface_create_from_png_stream(read, &bytes);
  const Pixels pixels{cairo_image_surface_get_width(surface),
                      cairo_image_surface_get_height(surface)};
  cairo_surface_destroy(surface);
  return pixels;
}

inline int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (size_t position = text.find(part); position != text.npos;
       position = text.find(part, position + 1))
    ++found;
  return found;
}

}  // namespace attend
