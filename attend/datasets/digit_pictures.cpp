#include "attend/datasets/digit_pictures.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string_view>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/random.h"
#include "attend/datasets/media_sets-inl.h"
#include "attend/datasets/new_files.h"
#include "attend/files/image.h"

namespace attend {
namespace {

namespace fs = std::filesystem;
using internal::DrawnPart;

constexpr int64_t max_digits = 5;
constexpr int64_t max_shift = 2;  // pixels
constexpr int64_t maximum_bytes = int64_t{1} << 31;

Image image_of(const LabelledImages& set, int64_t index) {
  return {set.images.shape[1], set.images.shape[2], std::string(set.images.entry(index))};
}

// At overlaps the brighter pixel stays. Parts outside the picture are cut.
void put(const Image& image, int64_t top, int64_t left, Image& picture) {
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      if (top + y < 0 || top + y >= picture.height) continue;
      if (left + x < 0 || left + x >= picture.width) continue;
      char& pixel = picture.pixels[static_cast<size_t>((top + y) * picture.width + left + x)];
      const char other = image.pixels[static_cast<size_t>(y * image.width + x)];
      if (static_cast<unsigned char>(other) > static_cast<unsigned char>(pixel)) pixel = other;
    }
  }
}

// Draws random numbers, and images of one part.
class Drawer {
 public:
  Drawer(const LabelledImages& set, const DrawnPart& part, int64_t seed)
      : set_(set),
        part_(part),
        random_(internal::generator(static_cast<uint64_t>(seed), part.stream)) {}

  const LabelledImages& set() const { return set_; }
  int64_t draw_image() { return part_.first + below(part_.last - part_.first); }
  int64_t below(int64_t count) {
    return static_cast<int64_t>(internal::draw_below(static_cast<uint64_t>(count), random_));
  }

 private:
  const LabelledImages& set_;
  const DrawnPart& part_;
  std::mt19937_64 random_;
};

// Adds part.idx and its table. `draw` fills each black picture and returns its target.
WrittenTable add_pictures(
    NewFolder& folder, const DrawnPart& part, int64_t height, int64_t width,
    const std::function<std::string(const std::string& name, Image& picture)>& draw) {
  IdxArray pictures{{part.count, height, width}, {}};
  if (part.count > maximum_bytes / pictures.entry_size())
    fail("{} pictures of {} bytes are over {} bytes; ask for fewer", part.count,
         pictures.entry_size(), maximum_bytes);
  pictures.bytes.reserve(static_cast<size_t>(part.count * pictures.entry_size()));
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(part.count));
  for (int64_t i = 0; i < part.count; ++i) {
    const std::string name = fmt::format("{}.idx:{}", part.name, i);
    Image picture{height, width, std::string(static_cast<size_t>(height * width), 0)};
    lines.push_back(name + '\t' + draw(name, picture));
    pictures.bytes += picture.pixels;
  }
  folder.add(part.name + ".idx", idx_bytes(pictures));
  return internal::add_table(folder, part.name, lines);
}

// Puts a row of digits into the picture and returns its target.
std::string draw_row(Drawer& drawer, Image& picture) {
  const int64_t width = picture.width / max_digits;
  const int64_t digits = 1 + drawer.below(max_digits);
  const int64_t begin = drawer.below((max_digits - digits) * width + 1);
  std::string target;
  for (int64_t i = 0; i < digits; ++i) {
    const int64_t image = drawer.draw_image();
    const int64_t down = drawer.below(2 * max_shift + 1) - max_shift;
    const int64_t right = drawer.below(2 * max_shift + 1) - max_shift;
    put(image_of(drawer.set(), image), down, begin + i * width + right, picture);
    if (i > 0) target += ' ';
    target += std::to_string(internal::label_of(drawer.set(), image));
  }
  return target;
}

constexpr std::array<std::string_view, 19> number_words = {
    "zero",     "one",     "two",     "three",     "four",    "five",   "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",  "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"};

std::string in_words(int64_t number) {
  const std::string_view word = number_words[static_cast<size_t>(std::abs(number))];
  return fmt::format("{}{}", number < 0 ? "minus " : "", word);
}

struct Operation {
  std::string_view word;
  int64_t factor;   // multiplies the second number before the addition
  bool is_crossed;  // the sign has a vertical bar, too
};

constexpr std::array<Operation, 2> operations = {{{"plus", 1, true}, {"minus", -1, false}}};

// Returns a sign half as large as an image.
Image sign_of(const Operation& operation, const LabelledImages& set) {
  const int64_t length = std::min(set.images.shape[1], set.images.shape[2]) / 2;
  const int64_t thick = std::max<int64_t>(length / 7, 1);
  const std::string bar(static_cast<size_t>(length * thick), '\xff');
  if (!operation.is_crossed) return {thick, length, bar};
  Image sign{length, length, std::string(static_cast<size_t>(length * length), 0)};
  put({thick, length, bar}, (length - thick) / 2, 0, sign);
  put({length, thick, bar}, 0, (length - thick) / 2, sign);
  return sign;
}

// Crops the image to its non-black pixels.
Image without_margins(const Image& image) {
  int64_t top = image.height, bottom = 0, left = image.width, right = 0;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      if (image.pixels[static_cast<size_t>(y * image.width + x)] == 0) continue;
      top = std::min(top, y);
      bottom = std::max(bottom, y + 1);
      left = std::min(left, x);
      right = std::max(right, x + 1);
    }
  }
  if (bottom == 0) return image;
  Image result{bottom - top, right - left, {}};
  for (int64_t y = top; y < bottom; ++y)
    result.pixels += image.pixels.substr(static_cast<size_t>(y * image.width + left),
                                         static_cast<size_t>(right - left));
  return result;
}

// An image to put into a picture, and its word.
struct NamedDigit {
  std::string_view word;
  Image image;
};

// Puts the items from left to right into the picture, and appends their places.
void put_apart(Drawer& drawer, const std::array<NamedDigit, 3>& items, int64_t gap,
               const std::string& name, Image& picture, std::vector<std::string>& places) {
  int64_t room = picture.width - gap * (std::ssize(items) - 1);
  for (const NamedDigit& item : items) room -= item.image.width;
  // Sorted draws split the free width, with equal probability for every split.
  std::array<int64_t, 3> before = {};
  for (int64_t& each : before) each = drawer.below(room + 1);
  std::sort(before.begin(), before.end());
  int64_t taken = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const Image& image = items[i].image;
    const int64_t top = drawer.below(picture.height - image.height + 1);
    const int64_t left = before[i] + taken;
    put(image, top, left, picture);
    places.push_back(fmt::format("{}\t{}\t{}\t{}\t{}\t{}", name, items[i].word, top, left,
                                 image.height, image.width));
    taken += image.width + gap;
  }
}

// Puts two digits and a sign into the picture, appends their places and returns the target.
std::string draw_sum(Drawer& drawer, const std::string& name, Image& picture,
                     std::vector<std::string>& places) {
  const LabelledImages& set = drawer.set();
  const auto& operation = operations[static_cast<size_t>(drawer.below(std::ssize(operations)))];
  const int64_t first = drawer.draw_image(), second = drawer.draw_image();
  const int64_t one = internal::label_of(set, first), other = internal::label_of(set, second);
  const auto digit = [&](int64_t index, int64_t label) {
    return NamedDigit{number_words[static_cast<size_t>(label)],
                      without_margins(image_of(set, index))};
  };
  // Images and a sign of half their size leave room for more.
  const int64_t gap = std::max<int64_t>(set.images.shape[2] / 14, 1);
  const std::array<NamedDigit, 3> items = {
      digit(first, one), NamedDigit{operation.word, sign_of(operation, set)}, digit(second, other)};
  put_apart(drawer, items, gap, name, picture, places);
  return fmt::format("{} {} {} is {}", items[0].word, items[1].word, items[2].word,
                     in_words(one + operation.factor * other));
}

void check_digits(const LabelledImages& set, const std::string& images, const std::string& labels) {
  constexpr int64_t fewest_pixels = 8;
  if (std::min(set.images.shape[1], set.images.shape[2]) < fewest_pixels)
    fail("{}: images are {} by {} pixels; take some of {} or more", images, set.images.shape[1],
         set.images.shape[2], fewest_pixels);
  for (int64_t i = 0; i < set.labels.shape[0]; ++i)
    if (const int label = internal::label_of(set, i); label > 9)
      fail("{}: label {} of image {} is not a digit from 0 to 9", labels, label, i);
}

}  // namespace

std::vector<WrittenTable> write_digit_rows(const DigitRows& rows) {
  const LabelledImages read = read_labelled_images(rows.images, rows.labels);
  const std::vector<DrawnPart> parts = internal::drawn_parts(rows, read);
  NewFolder folder(rows.folder);
  std::vector<WrittenTable> tables;
  for (const DrawnPart& part : parts) {
    Drawer drawer(read, part, rows.seed);
    tables.push_back(add_pictures(
        folder, part, read.images.shape[1], max_digits * read.images.shape[2],
        [&](const std::string& /*name*/, Image& picture) { return draw_row(drawer, picture); }));
  }
  folder.write();
  return tables;
}

std::vector<WrittenTable> write_digit_sums(const DigitSums& sums) {
  const LabelledImages read = read_labelled_images(sums.images, sums.labels);
  check_digits(read, sums.images, sums.labels);
  const std::vector<DrawnPart> parts = internal::drawn_parts(sums, read);
  NewFolder folder(sums.folder);
  std::vector<WrittenTable> tables;
  for (const DrawnPart& part : parts) {
    Drawer drawer(read, part, sums.seed);
    std::vector<std::string> places;
    tables.push_back(add_pictures(folder, part, read.images.shape[1] * 3 / 2,
                                  3 * read.images.shape[2],
                                  [&](const std::string& name, Image& picture) {
                                    return draw_sum(drawer, name, picture, places);
                                  }));
    internal::add_table(folder, part.name + "-places", places);
  }
  folder.write();
  return tables;
}

}  // namespace attend
