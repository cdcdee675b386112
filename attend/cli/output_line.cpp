#include "attend/cli/output_line.h"

namespace attend {

std::string in_one_line(std::string_view text, std::string_view escaped) {
  std::string line;
  for (const char c : text) {
    if (escaped.find(c) == std::string_view::npos)
      line += c;
    else
      (line += '\\') += c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : c;
  }
  return line;
}

}  // namespace attend
