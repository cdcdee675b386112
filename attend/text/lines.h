#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/files/compressed.h"
#include "attend/text/characters.h"

namespace attend::internal {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Returns why these bytes, without a line end, are not a line of text; empty if they are valid.
inline std::string fault_of(std::string_view line, int64_t maximum_line) {
  if (static_cast<int64_t>(line.size()) > maximum_line)
    return fmt::format("the line has over {} bytes; split it", maximum_line);
  if (line.find('\0') != std::string_view::npos)
    return "holds a NUL byte; save the file as UTF-8 text (is it UTF-16, or no text?)";
  if (line.find('\r') != std::string_view::npos)
    return "a carriage return within the line; end lines with LF or CRLF";
  return "";
}

// Iterates over the lines of a text file: LF or CRLF, a byte order mark is skipped, the last line
// may lack an end. Error, naming file and line, on a NUL, a carriage return within a line, or a
// line over `maximum_line` bytes. The next call continues after such a line.
class Lines {
 public:
  Lines(std::string_view bytes, std::string name, int64_t maximum_line)
      : rest_(bytes), name_(std::move(name)), maximum_line_(maximum_line) {
    skip_byte_order_mark();
  }

  // Reads the file piece by piece; it may be larger than memory.
  Lines(ByteReader reader, int64_t maximum_line)
      : name_(reader.name()), maximum_line_(maximum_line), reader_(std::move(reader)) {
    read_on();
    skip_byte_order_mark();
  }

  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // `line` is valid until the next call.
  bool next(std::string_view& line) {
    size_t end = rest_.find('\n');
    while (end == std::string_view::npos && read_on()) end = rest_.find('\n');
    if (rest_.empty()) return false;
    ++number_;
    line = rest_.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::string fault = fault_of(line, maximum_line_); !fault.empty()) {
      pass_line(end);
      fail("{}: {}", where(), fault);
    }
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return true;
  }

  // As next, for lines that are not blank: returns false if only blank lines are left. A blank line
  // before others is returned.
  bool next_entry(std::string_view& line) {
    if (!next(line)) return false;
    if (line.find_first_not_of(" \t") != std::string_view::npos) return true;
    blank_ = line;
    line = blank_;
    return !only_blanks_follow();
  }

  // Whether blanks up to `maximum_line` bytes end the file. Ends the validity of the last line.
  bool only_blanks_follow() {
    while (rest_.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      if (static_cast<int64_t>(rest_.size()) > maximum_line_) return false;
      if (!read_on()) return true;
    }
    return false;
  }

  int64_t number() const { return number_; }
  std::string where() const { return fmt::format("{}:{}", name_, number_); }

 private:
  void skip_byte_order_mark() {
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }

  // Skips a line that ends at `end` of the rest, or, if that is npos, at the next line end.
  void pass_line(size_t end) {
    while (end == std::string_view::npos) {
      rest_ = {};
      if (!read_on()) return;
      end = rest_.find('\n');
    }
    rest_.remove_prefix(end + 1);
  }

  // Appends more bytes to the rest. Returns false at the end, or if the line is too long anyway.
  bool read_on() {
    constexpr size_t piece = size_t{1} << 16;
    if (!reader_ || static_cast<int64_t>(rest_.size()) > maximum_line_ + 1) return false;
    std::string bytes(rest_);
    bytes.resize(rest_.size() + piece);
    const size_t count = reader_->read(bytes.data() + rest_.size(), piece);
    bytes.resize(rest_.size() + count);
    buffer_ = std::move(bytes);
    rest_ = buffer_;
    return count > 0;
  }

  std::string_view rest_;
  std::string name_;
  int64_t maximum_line_;
  int64_t number_ = 0;
  std::optional<ByteReader> reader_;
  std::string buffer_, blank_;
};

// Converts a text to one line without TABs.
inline std::string joined_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "\r\n") ++i;
    line += text[i] == '\r' || text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
  }
  return line;
}

// Splits a line at its TABs.
inline std::vector<std::string_view> between_tabs(std::string_view line) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    parts.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Calls `work` and prefixes the message of an Error with the place.
template <class Work>
auto at_line(const Lines& lines, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail("{}: {}", lines.where(), error.what());
  }
}

// Reads the next line of text; false at the end. If the line is invalid, `problem` is set to the
// reason. Error if reading cannot continue.
inline bool next_text(Lines& lines, std::string& text, std::string& problem) {
  const int64_t before = lines.number();
  try {
    std::string_view line;
    if (!lines.next(line)) return false;
    text = line;
    at_line(lines, [&] { check_characters(line); });
  } catch (const Error& error) {
    if (lines.number() == before) throw;
    problem = error.what();
  }
  return true;
}

}  // namespace attend::internal
