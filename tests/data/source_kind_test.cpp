#include "attend/data/source_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <map>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/image_source.h"
#include "tests/support/files.h"

namespace attend {
namespace source_kind_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string png_bytes(const std::string& pixels, uint32_t width, uint32_t height, uint32_t format) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, 0);
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  return bytes;
}

TEST(ImageFrames, ArePatchesRowByRow) {
  // 3 x 4 pixels in patches of 2: a row of zeros is added below.
  const Image image{3, 4, std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b", 12)};
  const FrameConfig config{.patch = 2, .image_height = 3, .image_width = 4};
  const at::Tensor frames = image_frames(image, config, "x") * 255;
  const at::Tensor wanted =
      at::tensor({0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 0, 0, 10, 11, 0, 0}).view({4, 4});
  EXPECT_TRUE(at::allclose(frames, wanted.to(at::kFloat), 1e-6, 1e-6));
  EXPECT_THAT(
      source_kind("image")->frame_names("x", config, 4),
      ElementsAre("row 1, column 1", "row 1, column 2", "row 2, column 1", "row 2, column 2"));
  EXPECT_THAT(refusal([&] {
                image_frames({2, 2, "abcd"}, config, "y.png");
              }),
              HasSubstr("y.png: is 2 pixels high and 2 wide; this model reads 3 by 4"));
}

TEST(ImageFrames, HoldOneColourAfterAnother) {
  std::string pixels;
  for (int value = 0; value < 24; ++value) pixels += static_cast<char>(value);
  const std::string png = png_bytes(pixels, 4, 2, PNG_FORMAT_RGB);
  const FrameConfig config{.patch = 2, .image_height = 2, .image_width = 4, .colours = true};
  const Image image = parse_image(png, "x.png", Colours::rgb);
  EXPECT_EQ(image.pixels, pixels);
  const at::Tensor frames = image_frames(image, config, "x");
  const at::Tensor wanted = at::tensor({0, 3, 12, 15, 1, 4,  13, 16, 2, 5,  14, 17,  //
                                        6, 9, 18, 21, 7, 10, 19, 22, 8, 11, 20, 23})
                                .view({2, 12});
  EXPECT_TRUE(at::allclose(frames * 255, wanted.to(at::kFloat), 1e-6, 1e-6));
  const Image picture = source_kind("image")->picture(frames, config);
  EXPECT_EQ(picture.pixels, pixels);
  EXPECT_EQ(parse_image(attend::png_bytes(picture), "x.png", Colours::rgb).pixels, pixels);
  EXPECT_EQ(source_kind("images")->picture(frames.view({1, 24}), config).pixels, pixels);
  EXPECT_EQ(in_rgb({1, 2, "ab"}).pixels, "aaabbb");
  EXPECT_THAT(refusal([&] {
                image_frames({2, 4, "abcdefgh"}, config, "y.png");
              }),
              HasSubstr("y.png: has 1 channels; this model reads 3 (data.colours)"));
}

TEST(ImageFrames, AreOfTheMiddleOfAResizedImage) {
  FrameConfig config{.patch = 1,
                     .image_height = 1,
                     .image_width = 2,
                     .resize = Resizing::bilinear,
                     .resized_height = 1,
                     .resized_width = 4};
  // Each of the four pixels is 1/8, 3/8, 3/8 and 1/8 of the two pixels that it covers and their
  // neighbours.
  const std::string row("\x00\x40\x80\xc0\x00\x40\x80\xc0", 8);
  const at::Tensor frames = image_frames({1, 8, row}, config, "x") * 255;
  EXPECT_TRUE(at::allclose(frames.flatten(), at::tensor({128.f, 64.f}))) << frames;
  EXPECT_THAT(refusal([&] {
                image_frames({int64_t{1} << 26, 1, ""}, config, "tall.png");
              }),
              HasSubstr("tall.png: is 67108864 pixels high"));
  config.resized_width = 1;
  EXPECT_THAT(refusal([&] {
                image_frames({1, 8, row}, config, "x");
              }),
              HasSubstr("data.resized_width are 1 by 1, less than 1 by 2"));
}

// Number of reads per file, for a kind of files that contain a number.
std::map<std::string, int> reads;
int64_t measured = 0;

class NumberFrames : public FrameReader {
 public:
  FileForm form(const std::string&) override { return {}; }
  at::Tensor read(const std::string& name) override {
    ++reads[name];
    return at::full({1, measured}, std::stod(name));
  }
};

TEST(FrameCache, ReadEachFileOnce) {
  SourceKind kind = *source_kind("sound");
  kind.measure = [](const std::string& name, FrameConfig&) {
    if (name == "0") fail("0: is nothing");
    measured = std::stoll(name);
  };
  kind.reader = [](const FrameConfig&) -> std::unique_ptr<FrameReader> {
    return std::make_unique<NumberFrames>();
  };
  reads.clear();
  FrameCache frames(kind, {});
  EXPECT_EQ(refusal([&] { frames.read("0"); }), "0: is nothing");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(frames.read("3"), at::full({1, 3}, 3.0)));
    EXPECT_TRUE(at::equal(frames.read("4"), at::full({1, 3}, 4.0))) << "as the first file is";
  }
  EXPECT_THAT(reads, ElementsAre(testing::Pair("3", 1), testing::Pair("4", 1)));
}

TEST(ImageFrames, StandInTheMiddleOfTheirPatches) {
  const FrameConfig config{.patch = 3, .image_height = 1, .image_width = 1};
  const at::Tensor frames = image_frames({1, 1, "\xff"}, config, "x");
  EXPECT_TRUE(
      at::equal(frames, at::tensor({0, 0, 0, 0, 1, 0, 0, 0, 0}).view({1, 9}).to(at::kFloat)));
}

TEST(Png, BecomesGrey) {
  const std::string grey("\x00\x40\x80\xff\x01\x02", 6);
  const Image image = parse_image(png_bytes(grey, 3, 2, PNG_FORMAT_GRAY), "x.png");
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.pixels, grey);
  EXPECT_FALSE(image.coloured);
  const test::TemporaryFolder folder;
  const std::string path = folder.write("X.PNG", png_bytes(grey, 3, 2, PNG_FORMAT_GRAY));
  EXPECT_EQ(ImageReader().read(path).pixels, grey) << "a name in capitals";
}

// As for a JPEG file, in Pillow and in OpenCV: 0.299 red + 0.587 green + 0.114 blue.
TEST(Png, HasTheGreysOfColours) {
  const std::string colours(
      "\xff\x00\x00\x00\xff\x00\x00\x00\xff\xc8\x64\x32\x01\x02\x03\xff\xff\xff", 18);
  const Image image = parse_image(png_bytes(colours, 6, 1, PNG_FORMAT_RGB), "x.png");
  EXPECT_EQ(image.pixels, std::string("\x4c\x96\x1d\x7c\x02\xff", 6)) << "76 150 29 124 2 255";
  EXPECT_TRUE(image.coloured);
}

TEST(Png, DropsAlpha) {
  const std::string pixels("\xc8\xc8\xc8\x80\xff\xff\xff\x00", 8);
  const Image image = parse_image(png_bytes(pixels, 2, 1, PNG_FORMAT_RGBA), "x.png");
  EXPECT_EQ(image.pixels, "\xc8\xff") << "no blending with a background";
  EXPECT_TRUE(image.transparent);
  const std::string opaque("\xc8\xc8\xc8\xff", 4);
  EXPECT_FALSE(parse_image(png_bytes(opaque, 1, 1, PNG_FORMAT_RGBA), "x.png").transparent);
}

// Written by hand, because libpng's simplified writers cannot write these files.
std::string chunk(const std::string& type, const std::string& data) {
  const auto number = [](uint64_t value) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  const std::string checked = type + data;
  return number(data.size()) + checked +
         number(crc32(0, reinterpret_cast<const Bytef*>(checked.data()),
                      static_cast<uInt>(checked.size())));
}

// One row of two grey pixels of `bits` bits, with chunks before and after them.
std::string grey_png(int bits, const std::string& row, const std::string& before,
                     const std::string& after) {
  const std::string filtered = std::string(1, 0) + row;
  uLongf size = compressBound(filtered.size());
  std::string packed(size, 0);
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(filtered.data()), filtered.size());
  packed.resize(size);
  using namespace std::string_literals;
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", "\0\0\0\x02\0\0\0\x01"s + static_cast<char>(bits) + "\0\0\0\0"s) + before +
         chunk("IDAT", packed) + after + chunk("IEND", "");
}

// 32896 and 1000 of 65535.
TEST(Png, KeepsTheHighByteOfSixteenBits) {
  const Image image = parse_image(grey_png(16, "\x80\x80\x03\xe8", "", ""), "x.png");
  EXPECT_EQ(image.pixels, "\x80\x03");
}

TEST(Png, IgnoresGamma) {
  const std::string linear = chunk("gAMA", std::string("\x00\x01\x86\xa0", 4));
  EXPECT_EQ(parse_image(grey_png(8, "\x40\xff", linear, ""), "x.png").pixels, "\x40\xff");
}

TEST(Png, IsTurnedUpright) {
  using namespace std::string_literals;
  const std::string half_turn =
      chunk("eXIf", "MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0"s);
  EXPECT_EQ(parse_image(grey_png(8, "\x40\xff", half_turn, ""), "x.png").pixels, "\xff\x40");
  EXPECT_EQ(parse_image(grey_png(8, "\x40\xff", "", half_turn), "x.png").pixels, "\xff\x40");
}

TEST(Images, MayBeLargerIfTheyAreResized) {
  const int64_t side = 4100;  // over 2^24 pixels
  const std::string png = attend::png_bytes({side, side, std::string(side * side, 'g')});
  EXPECT_THAT(refusal([&] { parse_image(png, "x.png"); }),
              HasSubstr("at most 16777216 are read, so scale it down or set data.resize"));
  EXPECT_EQ(parse_image(png, "x.png", Colours::grey, maximum_pixels_to_resize).width, side);
  const test::TemporaryFolder folder;
  const FrameConfig config{
      .patch = 2, .image_height = 4, .image_width = 4, .resize = Resizing::bilinear};
  const auto reader = source_kind("image")->reader(config);
  EXPECT_EQ(reader->read(folder.write("x.png", png)).sizes(), (std::vector<int64_t>{4, 4}));
}

TEST(Png, IsWrittenAsItIsRead) {
  const Image image{2, 3, std::string("\x00\x40\x80\xff\x01\x02", 6)};
  const Image read = parse_image(png_bytes(image), "x.png");
  EXPECT_EQ(read.height, 2);
  EXPECT_EQ(read.width, 3);
  EXPECT_EQ(read.pixels, image.pixels);
  EXPECT_THAT(refusal([] { png_bytes(Image{0, 0, ""}); }), HasSubstr("[png_bytes]"));
}

TEST(FramesPicture, IsTheImageWithItsMargin) {
  const Image image{3, 4, std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\xff", 12)};
  const FrameConfig config{.patch = 2, .image_height = 3, .image_width = 4};
  const at::Tensor frames = image_frames(image, config, "x");
  const Image picture = source_kind("image")->picture(frames, config);
  EXPECT_EQ(picture.height, 4);
  EXPECT_EQ(picture.width, 4);
  EXPECT_EQ(picture.pixels, image.pixels + std::string(4, 0));
  // The picture without the last two patches.
  EXPECT_EQ(source_kind("image")->picture(frames.slice(0, 0, 2), config).pixels,
            image.pixels.substr(0, 8) + std::string(8, 0));
}

TEST(FramesPicture, IsASpectrogramWithItsLowBandsBelow) {
  const FrameConfig config{.mel_bands = 2, .stack = 2};
  // Two frames of two windows of two bands.
  const at::Tensor frames =
      at::tensor({-1.0F, 0.0F, 1.0F, 2.0F, 3.0F, 4.0F, -1.0F, -1.0F}).view({2, 4});
  const Image picture = source_kind("sound")->picture(frames, config);
  EXPECT_EQ(picture.height, 2);
  EXPECT_EQ(picture.width, 4);
  // 51 (x + 1): band 2 (0 2 4 -1) above band 1 (-1 1 3 -1).
  EXPECT_EQ(picture.pixels, std::string("\x33\x99\xff\x00\x00\x66\xcc\x00", 8));
  const Image silence = source_kind("sound")->picture(at::zeros({1, 4}), config);
  EXPECT_EQ(silence.pixels, std::string(4, 0));
}

TEST(Png, RefusesWhatIsNone) {
  const std::string whole = png_bytes(std::string(100, 'p'), 10, 10, PNG_FORMAT_GRAY);
  for (size_t size = 0; size + 12 < whole.size(); ++size)
    EXPECT_THAT(refusal([&] { parse_image(whole.substr(0, size), "x.png"); }), HasSubstr("x.png: "))
        << size;
  EXPECT_THAT(refusal([] { parse_image("GIF89a and more", "x.png"); }), HasSubstr("x.png: "));
}

TEST(ImageReader, FindsImagesOfAnIdxFile) {
  const test::TemporaryFolder folder;
  write_file(folder / "i.idx", idx_bytes({{2, 1, 2}, "abcd"}));
  write_file(folder / "l.idx", idx_bytes({{2}, "ab"}));
  ImageReader reader;
  EXPECT_EQ(reader.read(folder / "i.idx:1").pixels, "cd");
  EXPECT_EQ(reader.read(folder / "i.idx:0").pixels, "ab");
  EXPECT_THAT(refusal([&] { reader.read(folder / "i.idx:2"); }),
              HasSubstr("i.idx: index 2 is not one of the 2 entries"));
  EXPECT_THAT(refusal([&] { reader.read(folder / "l.idx:0"); }), HasSubstr("no images"));
  EXPECT_THAT(refusal([&] { reader.read(folder / "i.idx"); }), HasSubstr("i.idx:"));
  EXPECT_THAT(refusal([&] { reader.read("none.idx:3"); }), HasSubstr("none.idx"));
}

TEST(PictureSets, AreInTheOrderOfTheirNames) {
  const test::TemporaryFolder folder;
  write_file(folder / "i.idx", idx_bytes({{3, 1, 2}, "abcdef"}));
  const SourceKind& kind = *source_kind("images");
  const auto set = [&](std::initializer_list<int> images) {
    std::string source;
    for (const int image : images) source += folder / "i.idx:" + std::to_string(image) + " ";
    return source;
  };
  FrameConfig config{.patch = 2};
  EXPECT_TRUE(kind.names(set({2, 0})));
  EXPECT_FALSE(kind.names(folder / "i.idx:2")) << "an image";
  kind.measure(set({2, 0}), config);
  EXPECT_EQ(kind.shape(config).depth(), 4) << "a patch with a row of zeros";
  const at::Tensor frames = kind.reader(config)->read(set({2, 0}));
  ASSERT_EQ(frames.sizes(), (std::vector<int64_t>{2, 4}));
  EXPECT_TRUE(at::equal(frames, kind.reader(config)->read(set({0, 2}))));
  EXPECT_NEAR(frames[0][0].item<float>(), 'a' / 255.0F, 1e-6);
  EXPECT_THAT(kind.frame_names(set({2, 0}), config, 2),
              ElementsAre(folder / "i.idx:0", folder / "i.idx:2"));
  const Image row = kind.picture(frames, config);
  EXPECT_EQ(row.height, 2);
  EXPECT_EQ(row.width, 4);
  EXPECT_EQ(row.pixels, std::string("abef\0\0\0\0", 8));
  EXPECT_EQ(kind.placed("b.png a.png", "data/t.tsv"), "data/a.png data/b.png");
  EXPECT_THAT(refusal([&] { kind.placed("a.png", "my data/t.tsv"); }), HasSubstr("has a blank"));
  EXPECT_THAT(refusal([&] { kind.reader(config)->read(" "); }), HasSubstr("a set is empty"));
  EXPECT_THAT(refusal([&] {
                kind.reader(config)->read(set({0, 3}));
              }),
              HasSubstr("index 3 is not one of the 3 entries"));
}

TEST(PlaceSources, NamesFilesBesideTheirTable) {
  std::vector<Example> examples = {{"a.png", {"x"}}, {"/b.png", {"y"}}};
  place_sources(examples, *source_kind("image"), "data/train.tsv");
  EXPECT_EQ(examples[0].source, "data/a.png");
  EXPECT_EQ(examples[1].source, "/b.png");
}

}  // namespace source_kind_test
}  // namespace attend
