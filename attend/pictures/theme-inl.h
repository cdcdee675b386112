#pragma once

#include <string>

namespace attend {

enum class Scheme { light, dark };

struct Rgb {
  int red, green, blue;  // 0 to 255
};

// Returns the colour of a single-hue scale at `fraction` in [0, 1], from nearly the colour of the
// page to the strongest. Lightness in Oklab (Ottosson 2020) is linear in the fraction, so that
// equal differences of weight look equal.
Rgb scale_color(double fraction, Scheme scheme);

// "#rrggbb"
std::string hex(Rgb color);

// Returns a style element: the rules of every picture (classes page, text, soft, line), then
// `light`, and `dark` for viewers that prefer it. librsvg ignores the dark part.
std::string style_element(const std::string& light, const std::string& dark);

// Returns the root element's start tag and the background, with sizes in pixels.
std::string svg_start(double width, double height, const std::string& description);

}  // namespace attend
