#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attend/nn/mechanism_table.h"

namespace attend {

// One test per row of the table. Reaches are shortened, so that short sequences have keys outside.
struct MechanismRow {
  std::string name;
  AttentionChoices choices;
};

inline std::vector<MechanismRow> mechanism_rows() {
  std::vector<MechanismRow> rows;
  rows.reserve(mechanism_table().size());
  for (const Mechanism& row : mechanism_table()) {
    rows.push_back({std::string(row.name), row.choices});
    std::string& scope = rows.back().choices.scope;
    if (const size_t reach = scope.find(":5"); reach != std::string::npos) scope[reach + 1] = '1';
  }
  return rows;
}

inline std::string row_name(const testing::TestParamInfo<MechanismRow>& info) {
  return info.param.name;
}

}  // namespace attend
