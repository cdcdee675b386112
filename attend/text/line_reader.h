#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Maximum number of bytes of a line or of a CSV row.
constexpr int64_t longest_line = 1 << 20;

// Reads lines of an open file as they arrive. One read returns all available lines: batches from a
// pipe, single lines from a terminal. Lines are as in files: LF or CRLF, a byte order mark at the
// beginning is skipped, and the last line may lack an end.
class LineReader {
 public:
  // Does not take ownership of the descriptor. `name` is for messages, e.g. "standard input".
  LineReader(int descriptor, std::string name, int64_t maximum_line = longest_line);

  // Waits for lines; false at the end of input. Error if reading fails, or, naming the line, if a
  // line contains a NUL or a carriage return or has over maximum_line bytes. The lines before such
  // a line are returned first, and the call after the Error continues after it.
  bool read(std::vector<std::string>& lines);

  int64_t lines_read() const { return lines_read_; }  // includes invalid lines

 private:
  void read_on();
  void take(std::vector<std::string>& lines);

  int descriptor_;
  std::string name_;
  int64_t maximum_line_;
  std::string pending_ = {};
  bool ended_ = false;
  bool skipping_ = false;  // skips the rest of a line that is too long
  int64_t lines_read_ = 0;
};

}  // namespace attend
