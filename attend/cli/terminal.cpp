#include "attend/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace attend {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool moves_cursor(int descriptor) {
  const std::string_view terminal = variable("TERM");
  return ::isatty(descriptor) == 1 && !terminal.empty() && terminal != "dumb";
}

bool shows_colors(int descriptor) {
  return moves_cursor(descriptor) && variable("TERM") != "linux" && variable("NO_COLOR").empty();
}

}  // namespace attend
