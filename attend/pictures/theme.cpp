#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"

namespace attend {
namespace {

int to_byte(double linear) {
  const double c = std::clamp(linear, 0.0, 1.0);
  const double encoded = c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055;
  return static_cast<int>(std::lround(255 * encoded));
}

Rgb from_oklch(double lightness, double chroma, double hue_degrees) {
  const double hue = hue_degrees * std::numbers::pi / 180;
  const double a = chroma * std::cos(hue);
  const double b = chroma * std::sin(hue);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {to_byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          to_byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          to_byte(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

}  // namespace

Rgb scale_color(double fraction, Scheme scheme) {
  constexpr double kHue = 256;
  // Nearly grey at zero, then as saturated as sRGB allows at this hue and lightness.
  const double chroma = 0.014 + 0.12 * std::sin(std::numbers::pi * 0.75 * fraction);
  const double lightness =
      scheme == Scheme::light ? 0.97 - 0.62 * fraction : 0.24 + 0.64 * fraction;
  return from_oklch(lightness, chroma, kHue);
}

std::string hex(Rgb color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

std::string style_element(const std::string& light, const std::string& dark) {
  return "<style>"
         ".page{fill:#fff}.text{fill:#1f2328}.soft{fill:#59636e}.line{stroke:#d1d9e0}" +
         light +
         "@media(prefers-color-scheme:dark){"
         ".page{fill:#0d1117}.text{fill:#e6edf3}.soft{fill:#9198a1}.line{stroke:#3d444d}" +
         dark + "}</style>\n";
}

std::string svg_start(double width, double height, const std::string& description) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" "
      "viewBox=\"0 0 {0:g} {1:g}\" role=\"img\" "
      "font-family=\"DejaVu Sans, Verdana, Noto Sans, Noto Sans CJK SC, sans-serif\" "
      "font-size=\"13\">\n<title>{2}</title>\n",
      std::ceil(width), std::ceil(height), escape_markup(description));
}

}  // namespace attend
