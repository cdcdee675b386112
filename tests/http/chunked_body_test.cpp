#include "attend/http/chunked_body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace attend::chunked_body_test {

constexpr int64_t limit = 100;

// Returns the decoded body and the unread rest, the status of a refusal, or "incomplete".
std::string decode(const std::string& text, size_t first = std::string::npos) {
  ChunkedBody chunks(limit);
  std::string body;
  size_t read = 0, arrived = std::min(first, text.size());
  while (!chunks.is_done()) {
    const auto reading = chunks.read(std::string_view(text).substr(read, arrived - read));
    if (const auto* refusal = std::get_if<HttpRefusal>(&reading)) {
      EXPECT_FALSE(refusal->message.empty());
      return std::to_string(refusal->status);
    }
    if (std::holds_alternative<HttpIncomplete>(reading)) {
      if (arrived == text.size()) return "incomplete";
      arrived = text.size();
      continue;
    }
    const auto& piece = std::get<ChunkedBody::Piece>(reading);
    body += piece.data;
    read += piece.size;
  }
  return body + "|" + text.substr(read);
}

TEST(ChunkedBody, JoinsTheChunks) {
  const std::string text = "5\r\nfirst\r\n00B\r\n and \r\n sec\r\n3\r\nond\r\n0\r\n\r\n";
  EXPECT_EQ(decode(text), "first and \r\n second|");
  EXPECT_EQ(decode(text + "GET /"), "first and \r\n second|GET /");
  EXPECT_EQ(decode("0\r\n\r\n"), "|");
  EXPECT_EQ(decode("0000000000000000\r\n\r\n"), "|");
  EXPECT_EQ(decode("b\r\n0123456789a\r\n0\r\n\r\n"), "0123456789a|");
}

TEST(ChunkedBody, DoesNotDependOnWhereTheBytesAreCut) {
  const std::string text = "5\r\nfirst\r\n00000000000000B\r\n and second\r\n0\r\n\r\nGET /";
  for (size_t first = 0; first < text.size(); ++first)
    EXPECT_EQ(decode(text, first), "first and second|GET /") << first;
  const std::string whole = text.substr(0, text.size() - 5);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(decode(whole.substr(0, size)), "incomplete") << size;
}

TEST(ChunkedBody, TheFramingIsStrict) {
  for (const char* text : {"5;a=b\r\n12345\r\n0\r\n\r\n",  // an extension
                           "5 \r\n12345\r\n0\r\n\r\n",     // white space
                           " 5\r\n12345\r\n0\r\n\r\n",     //
                           "5\t\r\n12345\r\n0\r\n\r\n",    //
                           "5\n12345\n0\n\n",              // bare line feeds
                           "5\r12345",                     // a bare carriage return
                           "5\r\n12345\n0\r\n\r\n",        //
                           "5\r\n12345XX0\r\n\r\n",        // another length than announced
                           "5\r\n1234\r\n0\r\n\r\n",       //
                           "+5\r\n12345\r\n0\r\n\r\n",     // numbers of other forms
                           "-5\r\n12345\r\n0\r\n\r\n",     //
                           "0x5\r\n12345\r\n0\r\n\r\n",    //
                           "5_\r\n12345\r\n0\r\n\r\n",     //
                           "\r\n12345\r\n0\r\n\r\n",       //
                           "g\r\n",                        //
                           "00000000000000005\r\n12345\r\n0\r\n\r\n",  // 17 digits
                           "00000000000000005",                        // before its end
                           "5\r\n12345\r\n0\r\nX-A: b\r\n\r\n",        // a trailer
                           "0\r\nContent-Length: 5\r\n\r\n",           //
                           "0\r\n0\r\n\r\n"})
    EXPECT_EQ(decode(text), "400") << text;
}

TEST(ChunkedBody, HasALimitAtTheByte) {
  const auto sized = [](int first, int second) {
    std::string text;
    for (const int size : {first, second}) {
      char line[20];
      std::snprintf(line, sizeof line, "%x\r\n", size);
      text += line + std::string(size, 'x') + "\r\n";
    }
    return text + "0\r\n\r\n";
  };
  EXPECT_EQ(decode(sized(60, 40)), std::string(100, 'x') + "|");
  EXPECT_EQ(decode(sized(60, 41)), "413");
  EXPECT_EQ(decode("65\r\n"), "413") << "as soon as the size is there";
  for (const char* size : {"ffffffffffffffff", "8000000000000000", "7fffffffffffffff"})
    EXPECT_EQ(decode("1\r\nx\r\n" + std::string(size) + "\r\n"), "413") << size;
}

}  // namespace attend::chunked_body_test
