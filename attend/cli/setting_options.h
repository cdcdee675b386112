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

// Adds the option that sets the variable of a setting, which is a number or a flag: --top-k for
// top_k.
CLI::Option* add_setting_option(CLI::App& command, const Setting& setting, const std::string& help);

}  // namespace attend
