#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// Error: no `kind` has that name; it suggests the nearest of `names`, or lists them.
[[noreturn]] void fail_unknown(std::string_view kind, std::string_view name,
                               const std::vector<std::string>& names);

// The row with that name. Error where the table has none; `kind` says what its rows are: "score".
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
