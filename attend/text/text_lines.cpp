#include "attend/text/text_lines.h"

#include "attend/files/compressed.h"
#include "attend/text/lines.h"

namespace attend {
namespace {

std::vector<std::string> all_of(internal::Lines lines) {
  std::vector<std::string> all;
  std::string_view line;
  while (lines.next(line)) all.emplace_back(line);
  return all;
}

}  // namespace

std::vector<std::string> parse_lines(std::string_view bytes, const std::string& name,
                                     int64_t maximum_line) {
  return all_of(internal::Lines(bytes, name, maximum_line));
}

std::vector<std::string> read_lines(const std::string& path, int64_t maximum_line) {
  return all_of(internal::Lines(ByteReader(path), maximum_line));
}

}  // namespace attend
