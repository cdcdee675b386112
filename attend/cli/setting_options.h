#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "attend/base/settings.h"

namespace attend {

// Adds an option per setting of a table: --key-file for serve.key_file. Given options are appended
// to `assignments`, which assign() applies after a file and the environment.
void add_setting_options(CLI::App& command, const Settings& settings,
                         std::vector<std::string>& assignments);

}  // namespace attend
