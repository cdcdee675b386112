#include "attend/data/image_resize.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace attend {
namespace {

// Weights are integers in units of 2^-22: sums of bytes and weights with a total of a few times 1
// fit 32 bits.
constexpr int weight_bits = 22;

struct Kernel {
  double support;  // 0 from this distance on
  double (*at_distance)(double);
};

double triangle(double x) { return std::max(1 - std::abs(x), 0.0); }

// Keys 1981, eq. 15.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

Kernel kernel_of(Resizing way) {
  return way == Resizing::bicubic ? Kernel{2, cubic} : Kernel{1, triangle};
}

// The source pixels that a result pixel is the sum of.
struct Window {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

std::vector<Window> windows_of(int64_t from, int64_t to, const Kernel& kernel) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double spread = std::max(scale, 1.0);
  const double support = kernel.support * spread;
  std::vector<Window> windows(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max(int64_t{std::lround(centre - support)}, int64_t{0});
    const auto last = std::min(int64_t{std::lround(centre + support)}, from);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = first; j < last; ++j) {
      weights.push_back(kernel.at_distance((static_cast<double>(j) - centre + 0.5) * (1 / spread)));
      sum += weights.back();
    }
    Window& window = windows[static_cast<size_t>(i)];
    window.first = first;
    const double inverse = 1 / sum;
    for (const double weight : weights)
      window.weights.push_back(
          static_cast<int32_t>(std::lround(weight * inverse * (1 << weight_bits))));
  }
  return windows;
}

// Converts lines of `from` pixels, `step` bytes apart, to lines of windows.size() pixels. `line(i)`
// returns the offsets of line i in both images.
template <class Line>
void sum_lines(const std::string& pixels, std::string& result, int64_t lines, int64_t step,
               const std::vector<Window>& windows, Line line) {
  for (int64_t i = 0; i < lines; ++i) {
    const auto [from, to] = line(i);
    for (size_t x = 0; x < windows.size(); ++x) {
      int32_t sum = 1 << (weight_bits - 1);
      int64_t place = from + windows[x].first * step;
      for (const int32_t weight : windows[x].weights) {
        sum += weight * static_cast<unsigned char>(pixels[static_cast<size_t>(place)]);
        place += step;
      }
      result[static_cast<size_t>(to + static_cast<int64_t>(x) * step)] =
          static_cast<char>(std::clamp(sum >> weight_bits, 0, 255));
    }
  }
}

Image with_size(const Image& image, int64_t height, int64_t width) {
  Image result{height, width, {}, image.coloured, image.channels};
  result.pixels.resize(static_cast<size_t>(height * width * image.channels));
  return result;
}

Image resized_across(const Image& image, int64_t width, const Kernel& kernel) {
  Image result = with_size(image, image.height, width);
  const int64_t channels = image.channels;
  sum_lines(image.pixels, result.pixels, image.height * channels, channels,
            windows_of(image.width, width, kernel), [&](int64_t i) {
              const int64_t row = i / channels, channel = i % channels;
              return std::pair(row * image.width * channels + channel,
                               row * width * channels + channel);
            });
  return result;
}

Image resized_down(const Image& image, int64_t height, const Kernel& kernel) {
  Image result = with_size(image, height, image.width);
  const int64_t row = image.width * image.channels;
  sum_lines(image.pixels, result.pixels, row, row, windows_of(image.height, height, kernel),
            [](int64_t i) { return std::pair(i, i); });
  return result;
}

}  // namespace

Image resized(const Image& image, int64_t height, int64_t width, Resizing way) {
  const Kernel kernel = kernel_of(way);
  Image result = image;
  if (width != image.width) result = resized_across(result, width, kernel);
  if (height != image.height) result = resized_down(result, height, kernel);
  return result;
}

Image middle(const Image& image, int64_t height, int64_t width) {
  if (height == image.height && width == image.width) return image;
  const int64_t top = (image.height - height) / 2, left = (image.width - width) / 2;
  Image result{height, width, {}, image.coloured, image.channels};
  for (int64_t y = top; y < top + height; ++y)
    result.pixels.append(image.pixels,
                         static_cast<size_t>((y * image.width + left) * image.channels),
                         static_cast<size_t>(width * image.channels));
  return result;
}

}  // namespace attend
