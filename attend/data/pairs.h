#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/units.h"

namespace attend {

// A source and every target that counts as right for it.
struct Example {
  std::string source;
  std::vector<std::string> targets;  // at least one
};

// Reads source TAB target lines (UTF-8, with or without a byte order mark; LF or CRLF). Texts come
// out in NFC. Lines of the same source become one example with several targets, in order of first
// appearance; a repeated line counts once. Errors name file and line: missing or empty file, no
// TAB, more than one TAB, a side that is empty or blank, invalid UTF-8, a NUL or a lone carriage
// return, a line over `maximum_line` bytes.
std::vector<Example> read_pairs(const std::string& path, int64_t maximum_line = 1 << 20);

// The same for the bytes of a file; `name` stands for it in messages.
std::vector<Example> parse_pairs(std::string_view bytes, const std::string& name,
                                 int64_t maximum_line = 1 << 20);

// Error when nothing can be learned from the examples: no example, or targets that hold a single
// distinct symbol between them. `name` is the file's, for the message.
void check_pairs(const std::vector<Example>& examples, Units target_units, const std::string& name);

}  // namespace attend
