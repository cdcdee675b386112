#include "attend/pictures/markdown.h"

namespace attend {
namespace {

std::string with_escapes(std::string_view text, std::string_view signs) {
  std::string escaped;
  for (const char c : text) {
    if (signs.find(c) != signs.npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string markdown_cell(std::string_view text) { return with_escapes(text, "|*_<[~^"); }

// In a table, even code needs escaped bars.
std::string markdown_code(std::string_view text) {
  return text.empty() ? "-" : '`' + with_escapes(text, "|") + '`';
}

}  // namespace attend
