#include "attend/files/embedded_file.h"

#include <fmt/format.h>

#include "attend/base/base64.h"
#include "attend/base/error.h"

namespace attend {

bool holds_file(std::string_view source) { return source.starts_with("data:"); }

std::string held_file(std::string_view source) {
  constexpr std::string_view mark = ";base64,";
  const size_t comma = source.find(',');
  const std::string_view head = source.substr(0, comma);
  if (comma == std::string_view::npos || !source.substr(0, comma + 1).ends_with(mark))
    fail("{}: a file in place of its name is data:image/png;base64, and its bytes in base64",
         shown_source(head));
  return base64_bytes(source.substr(comma + 1));
}

std::string shown_source(std::string_view source) {
  constexpr size_t maximum = 40;
  if (!holds_file(source) || source.size() <= maximum) return std::string(source);
  return fmt::format("{}..", source.substr(0, maximum));
}

}  // namespace attend
