#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "attend/base/error.h"

namespace attend::internal {

// Walks the lines of a text file: LF or CRLF, a byte order mark skipped, the last line with or
// without an end. Error, naming file and line, on what is no text: a NUL, a carriage return within
// a line, a line over `maximum_line` bytes.
class Lines {
 public:
  Lines(std::string_view bytes, std::string name, int64_t maximum_line)
      : rest_(bytes), name_(std::move(name)), maximum_line_(maximum_line) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    ++number_;
    const size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    check(line);
    return true;
  }

  int64_t number() const { return number_; }
  std::string where() const { return fmt::format("{}:{}", name_, number_); }

 private:
  void check(std::string_view line) const {
    if (static_cast<int64_t>(line.size()) > maximum_line_) {
      fail("{}: the line has {} bytes; at most {} are allowed, so split it", where(), line.size(),
           maximum_line_);
    }
    if (line.find('\0') != std::string_view::npos) {
      fail("{}: holds a NUL byte; save the file as UTF-8 text (is it UTF-16, or no text?)",
           where());
    }
    if (line.find('\r') != std::string_view::npos) {
      fail("{}: a carriage return within the line; end lines with LF or CRLF", where());
    }
  }

  std::string_view rest_;
  std::string name_;
  int64_t maximum_line_;
  int64_t number_ = 0;
};

// Calls `work` and puts the place in front of the message when it fails.
template <class Work>
auto at_line(const Lines& lines, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail("{}: {}", lines.where(), error.what());
  }
}

}  // namespace attend::internal
