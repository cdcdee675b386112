#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/base64.h"
#include "attend/base/error.h"
#include "attend/data/image_source.h"
#include "attend/data/source_kind.h"
#include "tests/support/files.h"

namespace attend {
namespace jpeg_test {

using test::error_of;
using ::testing::HasSubstr;

// Images of 6 x 5 pixels, written by Pillow 11.3 with quality 90: a progressive one in colours at
// half the resolution, one in grey and one in CMYK.
const std::string in_colours = base64_bytes(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsL"
    "EBYQERMUFRUVDA8XGBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
    "FBQUFBQUFBQUFBQUFBQUFBQUFBT/wgARCAAFAAYDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAVAQEB"
    "AAAAAAAAAAAAAAAAAAACBv/aAAwDAQACEAMQAAABuJZf/8QAFxAAAwEAAAAAAAAAAAAAAAAABAUGEv/aAAgBAQABBQJd"
    "NC4//8QAGxEAAQQDAAAAAAAAAAAAAAAABQABAwQUIzH/2gAIAQMBAT8BCkLWBHsfi//EABoRAAEFAQAAAAAAAAAAAAAA"
    "AAUAAQIEFCP/2gAIAQIBAT8BKFr2ufV1/8QAFRABAQAAAAAAAAAAAAAAAAAAAOH/2gAIAQEABj8Cj//EABUQAQEAAAAA"
    "AAAAAAAAAAAAAEEA/9oACAEBAAE/ISSf/9oADAMBAAIAAwAAABD/AP/EABURAQEAAAAAAAAAAAAAAAAAAACx/9oACAED"
    "AQE/EKUP/8QAFhEAAwAAAAAAAAAAAAAAAAAAAFFh/9oACAECAQE/EKfZ/8QAGBAAAgMAAAAAAAAAAAAAAAAAABFBYdH/"
    "2gAIAQEAAT8QY1Q0/9k=");
const std::string pixels_in_colours = base64_bytes(
    "AQXYHAvVRQnBawmulgqerA6XDizaKTLXUTHDdy+vojKguDaaDWHDJ2e/T2WudmOaoGeItmuCDo6zKJSwUJOceJKJopR5"
    "uJhyGryvNMKsW8CYg76ErMN1wsVu");
const std::string in_grey = base64_bytes(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsL"
    "EBYQERMUFRUVDA8XGBYUGBIUFRT/wAALCAAFAAYBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QA"
    "tRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0"
    "NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2"
    "t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AL/w5/Zr8L/YD8n8I/5Zj/Gv"
    "/9k=");
const std::string pixels_in_grey = base64_bytes("HCcwOUVNN0JLU2BoU15nb3yEbHeAiZWdipWdprO6");
const std::string in_cmyk = base64_bytes(
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwADAgIDAgIDAwMDBAMDBAUIBQUEBAUKBwcGCAwKDAwLCgsLDQ4SEA0OEQ4LCxAW"
    "EBETFBUVFQwPFxgWFBgSFBUU/8AAFAgABQAGBEMRAE0RAFkRAEsRAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYH"
    "CAkKC//EALUQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBka"
    "JSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeo"
    "qaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAA4EQwBNAFkASwAAPwCv/wAE"
    "4f8AkQG/691/mK2f+Hd3w1/55f8AkBf8a2f2j/jbr3/CQD5v+Wh/jPvX6p1//9k=");

// Inserts an Exif segment with this orientation after the start marker.
std::string with_orientation(const std::string& jpeg, char orientation) {
  using namespace std::string_literals;
  const std::string exif =
      "Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + orientation + "\0\0\0\0\0\0"s;
  const auto size = static_cast<char>(exif.size() + 2);
  return jpeg.substr(0, 2) + "\xff\xe1\0"s + size + exif + jpeg.substr(2);
}

TEST(Jpeg, HasThePixelsOfPillow) {
  const Image colours = parse_image(in_colours, "x.jpg", Colours::rgb);
  EXPECT_EQ(colours.height, 5);
  EXPECT_EQ(colours.width, 6);
  EXPECT_TRUE(colours.coloured);
  EXPECT_EQ(colours.pixels, pixels_in_colours);
  const Image grey = parse_image(in_grey, "x.jpg");
  EXPECT_FALSE(grey.coloured);
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.pixels, pixels_in_grey);
  EXPECT_EQ(parse_image(in_grey, "x.jpg", Colours::rgb).pixels, in_rgb(grey).pixels);
}

TEST(Jpeg, IsTurnedUpright) {
  // The sides at which the file's first row and first column are seen, by Exif orientation.
  struct Seen {
    char orientation;
    bool row_is_vertical, from_bottom, from_right;
  };
  const Image stored = parse_image(in_grey, "x.jpg");
  for (const Seen& seen :
       {Seen{1, false, false, false}, Seen{2, false, false, true}, Seen{3, false, true, true},
        Seen{4, false, true, false}, Seen{5, true, false, false}, Seen{6, true, false, true},
        Seen{7, true, true, true}, Seen{8, true, true, false}}) {
    const Image image = parse_image(with_orientation(in_grey, seen.orientation), "x.jpg");
    ASSERT_EQ(image.height, seen.row_is_vertical ? stored.width : stored.height);
    ASSERT_EQ(image.width, seen.row_is_vertical ? stored.height : stored.width);
    for (int64_t row = 0; row < stored.height; ++row) {
      for (int64_t column = 0; column < stored.width; ++column) {
        const int64_t down = seen.row_is_vertical ? column : row;
        const int64_t across = seen.row_is_vertical ? row : column;
        const int64_t y = seen.from_bottom ? image.height - 1 - down : down;
        const int64_t x = seen.from_right ? image.width - 1 - across : across;
        EXPECT_EQ(image.pixels[static_cast<size_t>(y * image.width + x)],
                  stored.pixels[static_cast<size_t>(row * stored.width + column)])
            << int{seen.orientation} << ": " << row << ", " << column;
      }
    }
  }
  for (const char none : {'\0', '\x09'})
    EXPECT_EQ(parse_image(with_orientation(in_grey, none), "x.jpg").pixels, pixels_in_grey);
}

TEST(Jpeg, RefusesWhatIsDamaged) {
  for (size_t size = 3; size + 2 < in_colours.size(); ++size)
    EXPECT_THAT(error_of([&] { parse_image(in_colours.substr(0, size), "x.jpg"); }),
                HasSubstr("x.jpg: cannot be read as JPEG: "))
        << size;
  EXPECT_THAT(error_of([] { parse_image(in_cmyk, "x.jpg"); }),
              HasSubstr("x.jpg: is a JPEG image in CMYK"));
  // 65,500 by 65,500 pixels.
  std::string large = in_grey;
  large.replace(large.find("\xff\xc0") + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_THAT(error_of([&] { parse_image(large, "x.jpg"); }), HasSubstr("65500 x 65500 pixels"));
  EXPECT_THAT(error_of([] { parse_image("GIF89a and more", "x.png"); }),
              HasSubstr("x.png: is neither a PNG nor a JPEG image"));
}

// Stray bytes between segments change no pixel, though libjpeg warns; damage does.
TEST(Jpeg, MayHaveStrayBytesBetweenSegments) {
  for (const std::string& jpeg : {in_colours, in_grey}) {
    const size_t tables = jpeg.find("\xff\xdb");
    for (const std::string& stray : {std::string(1, 'x'), std::string("\x00\x01\xff\x00\xff", 5)}) {
      const std::string more = jpeg.substr(0, tables) + stray + jpeg.substr(tables);
      EXPECT_EQ(parse_image(more, "x.jpg").pixels, parse_image(jpeg, "x.jpg").pixels);
    }
  }
}

TEST(Jpeg, IsReadByItsNameAndBySuffix) {
  const test::TemporaryFolder folder;
  for (const char* name : {"a.jpg", "b.JPEG", "a PNG by its name.png"}) {
    EXPECT_TRUE(source_kind("image")->names(name)) << name;
    EXPECT_EQ(ImageReader().read(folder.write(name, in_grey)).pixels, pixels_in_grey) << name;
  }
}

}  // namespace jpeg_test
}  // namespace attend
