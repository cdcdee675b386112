#include "attend/datasets/digit_pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "attend/base/files.h"
#include "attend/data/image_source.h"
#include "attend/data/pairs.h"
#include "attend/data/source_kind.h"
#include "attend/text/text_lines.h"
#include "tests/support/files.h"

namespace attend {
namespace digit_pictures_test {

using test::error_of;
using test::TemporaryFolder;
using testing::HasSubstr;

constexpr int64_t count = 40, height = 10, width = 9;
constexpr int64_t digit_height = 7, digit_width = 4;
const char sign_brightness = '\xff';

// Image i of 40 contains a digit of 7 x 4 pixels of brightness i + 1; its label is i % 10.
DigitSums digit_sums(const TemporaryFolder& folder) {
  IdxArray images{{count, height, width}, {}}, labels{{count}, {}};
  for (int64_t i = 0; i < count; ++i) {
    std::string image(height * width, '\0');
    for (int64_t y = i % 4; y < i % 4 + digit_height; ++y)
      for (int64_t x = i % 6; x < i % 6 + digit_width; ++x)
        image[static_cast<size_t>(y * width + x)] = static_cast<char>(i + 1);
    images.bytes += image;
    labels.bytes += static_cast<char>(i % 10);
  }
  write_file(folder / "images.idx", idx_bytes(images));
  write_file(folder / "labels.idx", idx_bytes(labels));
  DigitSums sums;
  sums.images = folder / "images.idx";
  sums.labels = folder / "labels.idx";
  sums.folder = folder / "out";
  return sums;
}

struct Place {
  std::string picture, word;
  int64_t top = 0, left = 0, height = 0, width = 0;
};

std::vector<Place> read_places(const std::string& path) {
  std::vector<Place> places;
  for (const std::string& line : read_lines(path)) {
    std::istringstream fields(line);
    Place& place = places.emplace_back();
    fields >> place.picture >> place.word >> place.top >> place.left >> place.height >> place.width;
  }
  return places;
}

// Returns the label of the digit at `place` and makes its pixels black.
int take_digit(Image& picture, const Place& place) {
  const char brightness =
      picture.pixels[static_cast<size_t>(place.top * picture.width + place.left)];
  EXPECT_EQ(place.height, digit_height);
  EXPECT_EQ(place.width, digit_width);
  for (int64_t y = place.top; y < place.top + place.height; ++y) {
    for (int64_t x = place.left; x < place.left + place.width; ++x) {
      char& pixel = picture.pixels[static_cast<size_t>(y * picture.width + x)];
      EXPECT_EQ(pixel, brightness);
      pixel = 0;
    }
  }
  return (brightness - 1) % 10;
}

// Checks a bar of 4 pixels, crossed for a plus, and makes its pixels black.
void take_sign(Image& picture, const Place& place) {
  EXPECT_EQ(place.width, 4);
  EXPECT_EQ(place.height, place.word == "plus" ? 4 : 1);
  int64_t bright = 0;
  for (int64_t y = place.top; y < place.top + place.height; ++y) {
    for (int64_t x = place.left; x < place.left + place.width; ++x) {
      char& pixel = picture.pixels[static_cast<size_t>(y * picture.width + x)];
      bright += pixel == sign_brightness ? 1 : 0;
      pixel = 0;
    }
  }
  EXPECT_EQ(bright, place.word == "plus" ? 7 : 4);
}

int number_of(const std::string& word) {
  const std::vector<std::string> words = {"zero",    "one",     "two",       "three",    "four",
                                          "five",    "six",     "seven",     "eight",    "nine",
                                          "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                          "fifteen", "sixteen", "seventeen", "eighteen"};
  return static_cast<int>(std::find(words.begin(), words.end(), word) - words.begin());
}

void expect_right(const std::string& target, int first, int second) {
  std::istringstream words(target);
  std::string one, operation, other, is, result, rest;
  words >> one >> operation >> other >> is >> result;
  EXPECT_EQ(number_of(one), first) << target;
  EXPECT_EQ(number_of(other), second) << target;
  EXPECT_EQ(is, "is");
  int value = operation == "plus" ? first + second : first - second;
  if (value < 0) {
    EXPECT_EQ(result, "minus") << target;
    words >> result;
    value = -value;
  }
  EXPECT_EQ(number_of(result), value) << target;
  EXPECT_FALSE(words >> rest) << target;
}

void expect_shown(const WrittenTable& table, const std::string& folder) {
  std::vector<Example> examples = read_pairs({table.path});
  const std::vector<Place> places = read_places(folder + "/" + table.name + "-places.tsv");
  ASSERT_EQ(places.size(), 3 * examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    const Place &first = places[3 * i], &sign = places[3 * i + 1], &second = places[3 * i + 2];
    EXPECT_EQ(examples[i].source, first.picture);
    EXPECT_EQ(examples[i].source, second.picture);
    EXPECT_EQ(examples[i].targets.at(0).substr(0, first.word.size() + sign.word.size() + 2),
              first.word + ' ' + sign.word + ' ');
    Image picture = ImageReader().read(folder + "/" + examples[i].source);
    ASSERT_EQ(picture.height, 15);
    ASSERT_EQ(picture.width, 27);
    EXPECT_LT(first.left + first.width, sign.left);
    EXPECT_LT(sign.left + sign.width, second.left);
    take_sign(picture, sign);
    const int one = take_digit(picture, first), other = take_digit(picture, second);
    expect_right(examples[i].targets.at(0), one, other);
    EXPECT_EQ(picture.pixels, std::string(picture.pixels.size(), '\0'));
  }
}

TEST(DigitSums, ShowTheirTargets) {
  const TemporaryFolder folder;
  DigitSums sums = digit_sums(folder);
  sums.count = 200;
  sums.valid = 30;
  const auto tables = write_digit_sums(sums);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].examples, 200);
  EXPECT_EQ(tables[1].examples, 30);
  for (const WrittenTable& table : tables) expect_shown(table, sums.folder);
}

TEST(DigitSums, FollowTheSeed) {
  const TemporaryFolder folder;
  DigitSums sums = digit_sums(folder);
  sums.count = 10;
  const auto drawn = [&](int64_t seed) {
    sums.seed = seed;
    sums.folder = folder / std::to_string(seed);
    write_digit_sums(sums);
    return test::contents(sums.folder + "/train.tsv") + test::contents(sums.folder + "/train.idx");
  };
  const std::string first = drawn(1);
  EXPECT_NE(drawn(2), first);
  EXPECT_EQ(drawn(1), first);
}

TEST(DigitSums, RefuseWhatIsNoDigit) {
  const TemporaryFolder folder;
  DigitSums sums = digit_sums(folder);
  write_file(folder / "labels.idx", idx_bytes({{count}, std::string(count - 1, '\1') + '\n'}));
  EXPECT_THAT(error_of([&] { write_digit_sums(sums); }), HasSubstr("label 10 of image 39"));
  write_file(folder / "labels.idx", idx_bytes({{count}, std::string(count, '\1')}));
  write_file(folder / "images.idx", idx_bytes({{count, 7, 9}, std::string(count * 63, '\1')}));
  EXPECT_THAT(error_of([&] { write_digit_sums(sums); }), HasSubstr("7 by 9 pixels"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace digit_pictures_test
}  // namespace attend
