#include "attend/base/suffix.h"

#include <algorithm>

namespace attend {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool has_suffix(std::string_view name, std::string_view suffix) {
  return name.size() >= suffix.size() &&
         std::equal(suffix.rbegin(), suffix.rend(), name.rbegin(),
                    [](char wanted, char found) { return wanted == lower(found); });
}

std::string_view without_packing(std::string_view name) {
  for (const std::string_view packed : {".gz", ".xz"})
    if (has_suffix(name, packed)) return name.substr(0, name.size() - packed.size());
  return name;
}

}  // namespace attend
