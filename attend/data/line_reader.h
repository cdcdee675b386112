#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Bytes of a line, or of a row of CSV, that is read at most.
constexpr int64_t longest_line = 1 << 20;

// Lines of an open file as they arrive: one read returns all the lines that are there, so that a
// pipe is answered in batches and a person at once. Lines are what they are in files: LF or CRLF, a
// byte order mark at the beginning is skipped, a last line without an end counts.
class LineReader {
 public:
  // The descriptor stays the caller's; `name` is for messages, as in "standard input".
  LineReader(int descriptor, std::string name, int64_t maximum_line = longest_line);

  // Waits for lines; false at the end of input. Error where it cannot be read, and, naming the
  // line, on a NUL, a carriage return within it, or over maximum_line bytes. Such a line is
  // reported by itself: the lines before it are returned first, and the next call continues behind
  // it.
  bool read(std::vector<std::string>& lines);

  int64_t lines_read() const { return lines_read_; }  // lines that are no text included

 private:
  void read_on();
  void take(std::vector<std::string>& lines);

  int descriptor_;
  std::string name_;
  int64_t maximum_line_;
  std::string pending_ = {};
  bool ended_ = false;
  bool skipping_ = false;  // behind too much of a line, to its end
  int64_t lines_read_ = 0;
};

}  // namespace attend
