#include "attend/data/line_reader.h"

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

TEST(LineReader, RefusesWhatIsNoText) {
  Pipe pipe;
  LineReader reader(pipe.reading_end(), "input");
  std::vector<std::string> lines;
  std::thread writer([&] {
    pipe.write("a line\n");
    const std::string part(1 << 16, 'x');
    for (int i = 0; i <= 256; ++i) pipe.write(part);
    pipe.close();
  });
  const auto read_all = [&] {
    while (reader.read(lines)) {
    }
  };
  try {
    read_all();
    ADD_FAILURE() << "was read";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "input, line 2: over 16777216 bytes; break it into lines");
  }
  writer.join();
}

TEST(LineReader, NamesWhatCannotBeRead) {
  LineReader reader(-1, "input");
  std::vector<std::string> lines;
  EXPECT_THROW(reader.read(lines), Error);
}

}  // namespace line_reader_test
}  // namespace attend
