#include "attend/http/http_message.h"

#include <gtest/gtest.h>

#include <ctime>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attend::http_message_test {

TEST(HttpMessage, AHeadNamesWhatFollows) {
  const HttpResponse response{.status = 405, .body = "body", .fields = {{"Allow", "GET"}}};
  const std::string head = http_response_head(response, "id-1", {});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  for (const char* line : {"\r\nContent-Length: 4\r\n", "\r\nConnection: keep-alive\r\n",
                           "\r\nX-Request-Id: id-1\r\n", "\r\nAllow: GET\r\n"})
    EXPECT_NE(head.find(line), std::string::npos) << line << head;
  const std::string chunks = http_response_head(response, "", {.has_length = false});
  EXPECT_NE(chunks.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(chunks.find("Content-Length"), std::string::npos);
  const std::string old =
      http_response_head(response, "", {.has_length = false, .takes_chunks = false});
  EXPECT_EQ(old.find("Transfer-Encoding"), std::string::npos);
}

TEST(HttpMessage, AHeadTellsTheTimeAndWhoMayReadIt) {
  const std::string head = http_response_head({}, "", {.origin = "https://friend.example"});
  EXPECT_NE(head.find("\r\nAccess-Control-Allow-Origin: https://friend.example\r\n"),
            std::string::npos);
  EXPECT_NE(head.find("\r\nVary: Origin\r\n"), std::string::npos);
  const size_t date = head.find("\r\nDate: ") + 8;
  tm time{};
  const char* end = strptime(head.c_str() + date, "%a, %d %b %Y %H:%M:%S GMT", &time);
  ASSERT_NE(end, nullptr) << head;
  EXPECT_EQ(std::string_view(end, 2), "\r\n");
  EXPECT_EQ(http_response_head({}, "", {}).find("Access-Control"), std::string::npos);
}

TEST(HttpMessage, NothingThatEndsALineGetsIntoAHead) {
  const std::vector<std::string> texts = {"a\r\nX: b", "a\nb", std::string("a\0b", 3), "\x7f",
                                          "\xc3\xa9"};
  for (const std::string& text : texts) {
    EXPECT_THROW(http_response_head({.type = text}, "", {}), std::logic_error);
    EXPECT_THROW(http_response_head({.fields = {{"Allow", text}}}, "", {}), std::logic_error);
    EXPECT_THROW(http_response_head({.fields = {{text, "x"}}}, "", {}), std::logic_error);
    EXPECT_THROW(http_response_head({}, text, {}), std::logic_error);
  }
  EXPECT_THROW(http_response_head({.status = 299}, "", {}), std::logic_error);
}

TEST(HttpMessage, AnErrorIsPlainText) {
  const HttpResponse response = http_error(503, "busy");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "busy\n");
  EXPECT_TRUE(response.type.starts_with("text/plain"));
}

}  // namespace attend::http_message_test
