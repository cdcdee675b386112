#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// A source and every target that counts as right for it.
struct Example {
  std::string source;
  std::vector<std::string> targets;  // at least one
};

// Reads source TAB target lines (UTF-8, LF or CRLF). Lines of the same source become one example
// with several targets, in order of first appearance; a repeated line counts once. Errors name file
// and line: missing or empty file, no TAB, more than one TAB, an empty side, invalid UTF-8, a line
// over `maximum_line` bytes.
std::vector<Example> read_pairs(const std::string& path, int64_t maximum_line = 1 << 20);

}  // namespace attend
