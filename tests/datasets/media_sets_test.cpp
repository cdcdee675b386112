#include "attend/datasets/media_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "attend/base/files.h"
#include "attend/data/image_source.h"
#include "attend/data/pairs.h"
#include "attend/data/source_kind.h"
#include "attend/datasets/digit_pictures.h"
#include "tests/support/files.h"

namespace attend {
namespace media_sets_test {

using test::error_of;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

// Image i of 40 has 6 x 8 pixels of brightness i + 1 and the label i: both identify it.
constexpr int64_t count = 40, height = 6, width = 8;

void write_images(const TemporaryFolder& folder) {
  IdxArray images{{count, height, width}, {}}, labels{{count}, {}};
  for (int64_t i = 0; i < count; ++i) {
    images.bytes += std::string(height * width, static_cast<char>(i + 1));
    labels.bytes += static_cast<char>(i);
  }
  write_file(folder / "images.idx", idx_bytes(images));
  write_file(folder / "labels.idx", idx_bytes(labels));
}

ImageSet image_set(const TemporaryFolder& folder) {
  return {folder / "images.idx", folder / "labels.idx", folder / "out", "train", 0};
}

DigitRows digit_rows(const TemporaryFolder& folder, int64_t rows) {
  DigitRows result;
  static_cast<ImageSet&>(result) = image_set(folder);
  result.count = rows;
  return result;
}

std::vector<int> words_as_numbers(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<int>(stream), {}};
}

TEST(ImageTables, NameEveryImageOnce) {
  const TemporaryFolder folder;
  write_images(folder);
  ImageSet set = image_set(folder);
  set.valid = 3;
  const auto tables = write_image_tables(set);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].name, "train");
  EXPECT_EQ(tables[0].examples, 37);
  EXPECT_EQ(tables[1].name, "valid");
  ImageReader reader;
  int64_t next = 0;
  for (const WrittenTable& table : tables) {
    std::vector<Example> examples = read_pairs({table.path});
    place_sources(examples, *source_kind("image"), table.path);
    ASSERT_EQ(static_cast<int64_t>(examples.size()), table.examples);
    for (const Example& example : examples) {
      EXPECT_THAT(example.targets, ElementsAre(std::to_string(next)));
      EXPECT_EQ(reader.read(example.source).pixels[0], static_cast<char>(++next));
    }
  }
  EXPECT_EQ(next, count);
}

TEST(ImageTables, KeepRelativePathsRelative) {
  const TemporaryFolder folder;
  write_images(folder);
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto tables = write_image_tables({"images.idx", "labels.idx", "a/b", "test", 0});
  std::filesystem::current_path(here);
  EXPECT_EQ(tables[0].path, "a/b/test.tsv");
  EXPECT_THAT(test::contents(folder / "a/b/test.tsv"),
              testing::StartsWith("../../images.idx:0\t0\n../../images.idx:1\t1\n"));
}

TEST(ImageTables, RefuseWhatDoesNotBelongTogether) {
  const TemporaryFolder folder;
  write_images(folder);
  write_file(folder / "few.idx", idx_bytes({{2}, "ab"}));
  const auto refused = [&](auto&& change) {
    ImageSet set = image_set(folder);
    change(set);
    return error_of([&] { write_image_tables(set); });
  };
  EXPECT_THAT(refused([&](auto& s) { s.labels = folder / "few.idx"; }),
              HasSubstr("few.idx: holds 2 labels"));
  EXPECT_THAT(refused([&](auto& s) { s.labels = s.images; }), HasSubstr("no labels"));
  EXPECT_THAT(refused([&](auto& s) { s.images = s.labels; }), HasSubstr("no images"));
  EXPECT_THAT(refused([&](auto& s) { s.images = folder / "none"; }), HasSubstr("none"));
  EXPECT_THAT(refused([&](auto& s) { s.valid = count; }), HasSubstr("aside for validation"));
  EXPECT_THAT(refused([&](auto& s) { s.folder = folder / "few.idx"; }), HasSubstr("is a file"));
}

// Images of a row from left to right, by the mean column of their visible pixels.
std::vector<int> in_quotes(const Image& row) {
  std::map<int, std::pair<double, double>> columns;  // image: sum and number of columns
  for (int64_t i = 0; i < row.height * row.width; ++i) {
    if (row.pixels[i] == 0) continue;
    auto& [sum, number] = columns[row.pixels[i] - 1];
    sum += static_cast<double>(i % row.width);
    number += 1;
  }
  std::vector<std::pair<double, int>> places;
  for (const auto& [image, column] : columns)
    places.emplace_back(column.first / column.second, image);
  std::sort(places.begin(), places.end());
  std::vector<int> images;
  for (const auto& place : places) images.push_back(place.second);
  return images;
}

TEST(DigitSets, HaveAsManyDigitsAsTheyTell) {
  const TemporaryFolder folder;
  write_images(folder);
  DigitSets sets;
  static_cast<ImageSet&>(sets) = image_set(folder);
  sets.count = 200;
  sets.valid = 30;
  sets.maximum = 3;
  const auto tables = write_digit_sets(sets);
  ASSERT_EQ(tables.size(), 2U);
  std::set<size_t> sizes;
  for (const WrittenTable& table : tables) {
    std::vector<Example> examples = read_pairs({table.path});
    place_sources(examples, *source_kind("images"), table.path);
    ASSERT_EQ(std::ssize(examples), table.name == "train" ? 200 : 30);
    ImageReader reader;
    for (const Example& example : examples) {
      std::set<char> digits;
      std::istringstream names(example.source);
      size_t size = 0;
      for (std::string name; names >> name; ++size) {
        const char brightness = reader.read(name).pixels[0];
        EXPECT_EQ(brightness > count - count / 10, table.name == "valid");
        digits.insert(brightness);
      }
      sizes.insert(size);
      EXPECT_THAT(example.targets, ElementsAre(std::to_string(digits.size())));
    }
  }
  EXPECT_EQ(sizes, (std::set<size_t>{1, 2, 3}));
  sets.folder = folder / "with blank";
  sets.images = folder / "a b.idx";
  write_file(sets.images, test::contents(folder / "images.idx"));
  EXPECT_THAT(error_of([&] { write_digit_sets(sets); }), HasSubstr("rename it"));
}

TEST(DigitRows, ShowTheirTargets) {
  const TemporaryFolder folder;
  write_images(folder);
  DigitRows rows = digit_rows(folder, 300);
  rows.valid = 20;
  const auto tables = write_digit_rows(rows);
  ASSERT_EQ(tables.size(), 2U);
  std::set<size_t> lengths;
  for (const WrittenTable& table : tables) {
    std::vector<Example> examples = read_pairs({table.path});
    place_sources(examples, *source_kind("image"), table.path);
    ASSERT_EQ(static_cast<int64_t>(examples.size()), table.name == "train" ? 300 : 20);
    ImageReader reader;
    for (const Example& example : examples) {
      const Image row = reader.read(example.source);
      ASSERT_EQ(row.height, height);
      ASSERT_EQ(row.width, 5 * width);
      const std::vector<int> digits = words_as_numbers(example.targets.at(0));
      lengths.insert(digits.size());
      // The last tenth, images 36 to 39, is for validation.
      for (const int digit : digits) EXPECT_EQ(digit >= 36, table.name == "valid");
      // Two neighbours that overlap by 4 of 8 columns stay visible in order.
      if (std::set(digits.begin(), digits.end()).size() == digits.size())
        EXPECT_EQ(in_quotes(row), digits);
      else
        EXPECT_EQ(in_quotes(row).size(), std::set(digits.begin(), digits.end()).size());
    }
  }
  EXPECT_THAT(lengths, ElementsAre(1U, 2U, 3U, 4U, 5U));
}

TEST(DigitRows, AreAFunctionOfTheirSeed) {
  const TemporaryFolder folder;
  write_images(folder);
  const auto drawn = [&](int64_t seed) {
    DigitRows rows = digit_rows(folder, 10);
    rows.seed = seed;
    rows.folder = folder / std::to_string(seed);
    write_digit_rows(rows);
    return test::contents(rows.folder + "/train.tsv") + test::contents(rows.folder + "/train.idx");
  };
  const std::string first = drawn(1);
  EXPECT_NE(drawn(2), first);
  EXPECT_EQ(drawn(1), first);
  EXPECT_THAT(error_of([&] { write_digit_rows(digit_rows(folder, 1'000'000'000)); }),
              HasSubstr("ask for fewer"));
}

TEST(SoundTables, SplitByIndex) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "r");
  for (const char* name :
       {"7_ann_4.wav", "7_ann_5.wav", "7_ann_9.wav", "7_ann_10.wav", "3_b_c_0.wav", "notes.txt"})
    folder.write(std::string("r/") + name, "");
  const auto tables = write_sound_tables(folder / "r", folder / "out");
  ASSERT_EQ(tables.size(), 3U);
  const std::string prefix = folder / "r/";
  EXPECT_EQ(test::contents(folder / "out/train.tsv"), prefix + "7_ann_10.wav\t7\n");
  EXPECT_EQ(test::contents(folder / "out/valid.tsv"),
            prefix + "7_ann_5.wav\t7\n" + prefix + "7_ann_9.wav\t7\n");
  EXPECT_EQ(test::contents(folder / "out/test.tsv"),
            prefix + "3_b_c_0.wav\t3\n" + prefix + "7_ann_4.wav\t7\n");
}

TEST(SoundTables, RefuseOtherNames) {
  const TemporaryFolder folder;
  const auto refused = [&] {
    return error_of([&] { write_sound_tables(folder.path(), folder / "out"); });
  };
  EXPECT_THAT(refused(), HasSubstr("holds no .wav files"));
  EXPECT_THAT(error_of([&] { write_sound_tables(folder / "none", folder / "out"); }),
              HasSubstr("none: no such folder"));
  for (const char* name :
       {"a.wav", "7_3.wav", "_x_3.wav", "7_x_.wav", "7_x_3b.wav", "7_x_-3.wav"}) {
    const std::string path = folder.write(name, "");
    EXPECT_THAT(refused(), HasSubstr(path + ": is not named LABEL_SPEAKER_INDEX.wav")) << name;
    std::filesystem::remove(path);
  }
  folder.write("7_x_12.wav", "");
  EXPECT_THAT(refused(), HasSubstr("leave train, valid or test empty"));
}

}  // namespace media_sets_test
}  // namespace attend
