#include "attend/data/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr size_t longest_line = size_t{1} << 24;

}  // namespace

LineReader::LineReader(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)) {}

bool LineReader::read(std::vector<std::string>& lines) {
  lines.clear();
  char buffer[1 << 16];
  while (lines.empty() && !ended_) {
    const ssize_t count = ::read(descriptor_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("{} cannot be read: {}", name_, std::strerror(errno));
    ended_ = count == 0;
    pending_.append(buffer, static_cast<size_t>(count));
    split(lines);
  }
  return !lines.empty();
}

void LineReader::split(std::vector<std::string>& lines) {
  size_t begin = 0;
  for (size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1)
    add(lines, pending_.substr(begin, end - begin));
  pending_.erase(0, begin);
  if (pending_.size() > longest_line)
    fail("{}, line {}: over {} bytes; break it into lines", name_, lines_read_ + 1, longest_line);
  if (ended_ && !pending_.empty()) add(lines, std::exchange(pending_, ""));
}

void LineReader::add(std::vector<std::string>& lines, std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  lines.push_back(std::move(line));
  ++lines_read_;
}

}  // namespace attend
