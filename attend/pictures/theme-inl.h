#pragma once

#include <string>

namespace attend {

enum class Scheme { light, dark };

struct Rgb {
  int red, green, blue;  // 0 to 255
};

// The map's single-hue scale at `fraction` in [0, 1]: lightness in Oklab (Ottosson 2020) is linear
// in the fraction, so that equal differences of weight look equal. From nearly the page's colour to
// the strongest.
Rgb scale_color(double fraction, Scheme scheme);

// "#rrggbb"
std::string hex(Rgb color);

// A style element: the rules of every picture (classes page, text, soft, line), then `light`, and
// for viewers who prefer it `dark` on top. librsvg passes over the dark part.
std::string style_element(const std::string& light, const std::string& dark);

// The root element's start tag and the page behind the picture, in pixels.
std::string svg_start(double width, double height, const std::string& description);

}  // namespace attend
