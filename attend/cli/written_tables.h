#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "attend/data/media_sets.h"

namespace attend {

// --json of a command that writes tables of data.
void add_tables_json(CLI::App& command, bool& json);

// Tells what such a command wrote.
void print_tables(const std::vector<WrittenTable>& tables, bool json);

}  // namespace attend
