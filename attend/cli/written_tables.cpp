#include "attend/cli/written_tables.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "attend/files/json_line.h"

namespace attend {

void add_tables_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json,
                   "Print one JSON object: for each table written, such as train and valid, "
                   "<table>_path and <table>_examples");
}

void print_tables(const std::vector<WrittenTable>& tables, bool json) {
  nlohmann::ordered_json report;
  for (const WrittenTable& table : tables) {
    report[table.name + "_path"] = table.path;
    report[table.name + "_examples"] = table.examples;
    if (!json) fmt::print("{:<6}{:>8} examples  {}\n", table.name, table.examples, table.path);
  }
  if (json) fmt::print("{}\n", json_line(report));
}

}  // namespace attend
