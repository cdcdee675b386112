#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/base/suffix.h"

namespace attend {

// Returns the row with the suffix of the file name; null if there is none.
template <class Row>
const Row* format_of(const std::vector<Row>& table, std::string_view path) {
  for (const Row& row : table)
    if (has_suffix(path, row.suffix)) return &row;
  return nullptr;
}

// Suffixes, with their notes, of the rows for which takes(row) is true: ".svg, .dot or .graphml".
template <class Row, class Takes>
std::string listed_formats(const std::vector<Row>& table, Takes takes) {
  std::vector<std::string> names;
  for (const Row& row : table)
    if (takes(row)) names.push_back(std::string(row.suffix) + std::string(row.note));
  std::string all;
  for (size_t i = 0; i < names.size(); ++i)
    all += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return all;
}

}  // namespace attend
