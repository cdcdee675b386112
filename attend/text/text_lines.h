#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// Returns the lines of a text, including empty ones (UTF-8, with or without a byte order mark; LF
// or CRLF). Messages call the text `name`. Errors name the line: a NUL, a lone carriage return, a
// line over `maximum_line` bytes.
std::vector<std::string> parse_lines(std::string_view bytes, const std::string& name,
                                     int64_t maximum_line = 1 << 20);

// Reads a file, packed by gzip or xz or not. Errors also as ByteReader.
std::vector<std::string> read_lines(const std::string& path, int64_t maximum_line = 1 << 20);

}  // namespace attend
