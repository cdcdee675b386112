#include "attend/text/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "attend/base/error.h"

namespace attend {
namespace line_reader_test {

using testing::ElementsAre;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    close();
  }
  void write(std::string_view text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), std::ssize(text));
  }
  void close() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }
  int reading_end() const { return ends_[0]; }

 private:
  int ends_[2] = {-1, -1};
};

TEST(LineReader, GivesTheLinesThatAreThere) {
  Pipe pipe;
  LineReader reader(pipe.reading_end(), "input");
  std::vector<std::string> lines;
  pipe.write("one\ntwo\r\nthr");
  EXPECT_TRUE(reader.read(lines));
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  pipe.write("ee\n\nlast");
  EXPECT_TRUE(reader.read(lines));
  EXPECT_THAT(lines, ElementsAre("three", ""));
  pipe.close();
  EXPECT_TRUE(reader.read(lines));
  EXPECT_THAT(lines, ElementsAre("last"));
  EXPECT_EQ(reader.lines_read(), 5);
  EXPECT_FALSE(reader.read(lines));
}

// All lines, with errors in their places.
std::vector<std::string> all_of(LineReader& reader) {
  std::vector<std::string> all, lines;
  while (true) {
    try {
      if (!reader.read(lines)) return all;
      all.insert(all.end(), lines.begin(), lines.end());
    } catch (const Error& error) {
      all.emplace_back(error.what());
    }
  }
}

TEST(LineReader, SkipsAByteOrderMark) {
  Pipe pipe;
  LineReader reader(pipe.reading_end(), "input");
  pipe.write(
      "\xEF\xBB\xBF"
      "one\n\xEF\xBB\xBFtwo\n");
  pipe.close();
  EXPECT_THAT(all_of(reader), ElementsAre("one", "\xEF\xBB\xBFtwo"));
}

TEST(LineReader, GoesOnBehindALineThatIsNone) {
  Pipe pipe;
  LineReader reader(pipe.reading_end(), "input", 20);
  pipe.write("one\na\rb\ntwo\n" + std::string(21, 'x') + "\n" + std::string(20, 'y') + "\r\n");
  pipe.write(std::string("\0\n", 2) + std::string(40, 'z'));
  pipe.close();
  EXPECT_THAT(
      all_of(reader),
      ElementsAre("one",
                  "input, line 2: a carriage return within the line; end lines with LF or "
                  "CRLF",
                  "two", "input, line 4: the line has over 20 bytes; split it",
                  std::string(20, 'y'), testing::StartsWith("input, line 6: holds a NUL byte"),
                  "input, line 7: the line has over 20 bytes; split it"));
  EXPECT_EQ(reader.lines_read(), 7);
}

// A line of many blocks is refused and skipped as it arrives.
TEST(LineReader, PassesOverALineOfAnyLength) {
  Pipe pipe;
  LineReader reader(pipe.reading_end(), "input");
  std::thread writer([&] {
    pipe.write("a line\n");
    const std::string part(1 << 16, 'x');
    for (int i = 0; i <= 64; ++i) pipe.write(part);
    pipe.write("\nthe next\n");
    pipe.close();
  });
  EXPECT_THAT(all_of(reader),
              ElementsAre("a line", "input, line 2: the line has over 1048576 bytes; split it",
                          "the next"));
  writer.join();
}

TEST(LineReader, NamesWhatCannotBeRead) {
  LineReader reader(-1, "input");
  std::vector<std::string> lines;
  EXPECT_THROW(reader.read(lines), Error);
}

}  // namespace line_reader_test
}  // namespace attend
