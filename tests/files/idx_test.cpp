#include "attend/files/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace idx_test {

using ::testing::HasSubstr;

// Two images of 1 x 3 pixels.
const std::string images = std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03", 16) + "abcdef";

std::string refusal(const std::string& bytes) {
  try {
    parse_idx(bytes, "x.idx");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Idx, ReadsImagesAndWritesThemBack) {
  const IdxArray array = parse_idx(images, "x.idx");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(array.entry(0), "abc");
  EXPECT_EQ(array.entry(1), "def");
  EXPECT_EQ(idx_bytes(array), images);
  EXPECT_THROW(array.entry(2), Error);
  EXPECT_THROW(array.entry(-1), Error);
}

TEST(Idx, ReadsSizesAsBigEndian) {
  const std::string labels = std::string("\0\0\x08\x01\0\0\x01\x02", 8) + std::string(258, 'l');
  EXPECT_EQ(parse_idx(labels, "l").shape, (std::vector<int64_t>{258}));
  EXPECT_EQ(idx_bytes(parse_idx(labels, "l")), labels);
}

TEST(Idx, RefusesWhatIsNone) {
  for (size_t size = 0; size < images.size(); ++size)
    EXPECT_THAT(refusal(images.substr(0, size)), HasSubstr("x.idx: ")) << size;
  EXPECT_THAT(refusal(images + "g"), HasSubstr("takes 6 bytes and 7 follow"));
  std::string floats = images;
  floats[2] = 0x0d;
  EXPECT_THAT(refusal(floats), HasSubstr("type 0x0d"));
  std::string axes = images;
  axes[3] = 4;
  EXPECT_THAT(refusal(axes), HasSubstr("4 axes"));
  std::string none = images;
  none[7] = 0;
  EXPECT_THAT(refusal(none), HasSubstr("axis 0 has no entries"));
  std::string huge = images;
  for (const size_t byte : {4, 8, 12}) huge[byte] = '\xff';
  EXPECT_THAT(refusal(huge), HasSubstr("over 2147483648 bytes"));
}

}  // namespace idx_test
}  // namespace attend
