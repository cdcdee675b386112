#include "attend/text/line_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "attend/base/error.h"
#include "attend/text/lines.h"

namespace attend {

LineReader::LineReader(int descriptor, std::string name, int64_t maximum_line)
    : descriptor_(descriptor), name_(std::move(name)), maximum_line_(maximum_line) {}

bool LineReader::read(std::vector<std::string>& lines) {
  lines.clear();
  while (true) {
    take(lines);
    if (!lines.empty()) return true;
    if (ended_) return false;
    read_on();
  }
}

void LineReader::read_on() {
  char buffer[1 << 16];
  const ssize_t count = ::read(descriptor_, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR) return;
  if (count < 0) fail("{} cannot be read: {}", name_, std::strerror(errno));
  ended_ = count == 0;
  std::string_view bytes(buffer, static_cast<size_t>(count));
  if (skipping_) {
    const size_t end = bytes.find('\n');
    skipping_ = end == std::string_view::npos;
    bytes.remove_prefix(skipping_ ? bytes.size() : end + 1);
  }
  pending_ += bytes;
}

// Moves the complete lines out of pending_, up to the first invalid one.
void LineReader::take(std::vector<std::string>& lines) {
  size_t begin = 0;
  std::string fault;
  while (begin < pending_.size()) {
    const size_t end = pending_.find('\n', begin);
    const bool whole = end != std::string::npos || ended_;
    std::string_view line = std::string_view(pending_).substr(begin, end - begin);
    // A carriage return may still become part of a line end.
    if (!whole && static_cast<int64_t>(line.size()) <= maximum_line_ + 1) break;
    if (lines_read_ == 0 && line.starts_with(internal::byte_order_mark))
      line.remove_prefix(internal::byte_order_mark.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    fault = internal::fault_of(line, maximum_line_);
    if (!fault.empty() && !lines.empty()) break;
    ++lines_read_;
    begin = end == std::string::npos ? pending_.size() : end + 1;
    skipping_ = !whole;
    if (!fault.empty()) break;
    lines.emplace_back(line);
  }
  pending_.erase(0, begin);
  if (!fault.empty() && lines.empty()) fail("{}, line {}: {}", name_, lines_read_, fault);
}

}  // namespace attend
