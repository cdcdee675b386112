#include "attend/files/json_line.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace attend {
namespace json_line_test {

TEST(JsonLine, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(json_line(nlohmann::json{{"path", "a\xff"}, {"lines", 2}}),
            "{\"lines\":2,\"path\":\"a\uFFFD\"}");
  EXPECT_EQ(json_line(nlohmann::ordered_json{{"path", "a\n"}, {"lines", 2}}),
            "{\"path\":\"a\\n\",\"lines\":2}");
}

}  // namespace json_line_test
}  // namespace attend
