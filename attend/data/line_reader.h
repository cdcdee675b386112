#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Lines of an open file as they come: one read gives all the lines that are there, so that a pipe
// is answered in batches and a person at once. A last line without an end counts; CR before a line
// end is left out.
class LineReader {
 public:
  // The descriptor stays the caller's; `name` is for messages, as in "standard input".
  LineReader(int descriptor, std::string name);

  // Waits for lines; false at the end of input. Error where it cannot be read, and on 16 MB without
  // a line end, which is no text.
  bool read(std::vector<std::string>& lines);

  int64_t lines_read() const { return lines_read_; }

 private:
  void split(std::vector<std::string>& lines);
  void add(std::vector<std::string>& lines, std::string line);

  int descriptor_;
  std::string name_;
  std::string pending_ = {};
  bool ended_ = false;
  int64_t lines_read_ = 0;
};

}  // namespace attend
