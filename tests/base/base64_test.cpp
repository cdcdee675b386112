#include "attend/base/base64.h"

#include <gmock/gmock.h>

#include "tests/support/files.h"

namespace attend::base64_test {

using testing::HasSubstr;

// Test vectors of RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  const std::string bytes = "foobar";
  const char* texts[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t i = 0; i <= bytes.size(); ++i) {
    EXPECT_EQ(base64_text(bytes.substr(0, i)), texts[i]);
    EXPECT_EQ(base64_bytes(texts[i]), bytes.substr(0, i));
  }
}

TEST(Base64, BringsEveryByteBack) {
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i * i + i / 256);
  for (size_t size : {1021U, 1022U, 1023U, 1024U})
    EXPECT_EQ(base64_bytes(base64_text(bytes.substr(0, size))), bytes.substr(0, size));
}

TEST(Base64, RefusesOtherTexts) {
  for (const char* text :
       {"Z", "Zg=", "Zg", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm-_", "Zm\xc3\xa9"})
    EXPECT_THAT(test::error_of([&] { base64_bytes(text); }), HasSubstr("base64")) << text;
  EXPECT_THAT(test::error_of([] { base64_bytes("Zh=="); }), HasSubstr("beyond the last byte"));
}

}  // namespace attend::base64_test
