#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// Throws an Error: no `kind` has that name. The message suggests the nearest of `names` or lists
// them.
[[noreturn]] void fail_unknown(std::string_view kind, std::string_view name,
                               const std::vector<std::string>& names);

// Returns the row with that name. Error if there is none. `kind` names the rows in the message,
// e.g. "score".
template <class Row>
const Row& find_row(const std::vector<Row>& table, std::string_view kind, std::string_view name) {
  std::vector<std::string> names;
  names.reserve(table.size());
  for (const Row& row : table) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  fail_unknown(kind, name, names);
}

}  // namespace attend
