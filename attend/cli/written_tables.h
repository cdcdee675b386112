#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "attend/datasets/media_sets.h"

namespace attend {

// --json of commands that write tables of data.
void add_tables_json(CLI::App& command, bool& json);

// Prints the list of written tables.
void print_tables(const std::vector<WrittenTable>& tables, bool json);

}  // namespace attend
