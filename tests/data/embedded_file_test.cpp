#include "attend/files/embedded_file.h"

#include <gmock/gmock.h>

#include "attend/base/base64.h"
#include "attend/data/image_source.h"
#include "attend/data/source_kind.h"
#include "attend/files/audio.h"
#include "tests/support/files.h"

namespace attend::embedded_file_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Lt;
using testing::SizeIs;

std::string held(const std::string& type, const std::string& bytes) {
  return "data:" + type + ";base64," + base64_text(bytes);
}

const Image image{2, 3, std::string("\x00\x40\x80\xc0\xf0\xff", 6)};

TEST(EmbeddedFile, AnImageIsReadAsFromItsFile) {
  const std::string source = held("image/png", png_bytes(image));
  EXPECT_TRUE(holds_file(source));
  EXPECT_EQ(ImageReader().read(source).pixels, image.pixels);
  const std::string other = test::error_of([&] {
    image_frames(ImageReader().read(source), {.patch = 1, .image_height = 9, .image_width = 9},
                 shown_source(source));
  });
  EXPECT_THAT(other, AllOf(HasSubstr("2 pixels high and 3 wide"), HasSubstr("data:image/png"),
                           SizeIs(Lt(200))));
}

TEST(EmbeddedFile, ASetOfImagesIsReadInTheOrderOfItsSources) {
  const std::string source = held("image/png", png_bytes(image));
  const SourceKind* kind = source_kind("images");
  ASSERT_NE(kind, nullptr);
  const auto reader = kind->reader({.patch = 1, .image_height = 2, .image_width = 3});
  EXPECT_EQ(reader->read(source + " " + source).size(0), 2);
}

TEST(EmbeddedFile, NothingElseIsRead) {
  for (const char* wrong : {"data:", "data:,abc", "data:image/png,abc", "data:image/png;base64",
                            "data:/etc/passwd", "data:image/png;base64,????",
                            "data:image/png;base64,aGVsbG8=", "data:../x.png", "data:x.idx:3"})
    EXPECT_NE(test::error_of([&] { ImageReader().read(wrong); }), "") << wrong;
  const auto sounds = source_kind("sound")->reader({});
  EXPECT_THAT(test::error_of([&] { sounds->read("data:audio/wav;base64,aGVsbG8="); }),
              HasSubstr("data:audio/wav"));
}

}  // namespace attend::embedded_file_test
