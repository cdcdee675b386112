#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "attend/base/settings.h"

namespace attend {

// An option for each setting of a table: --key-file for serve.key_file. What is given is added to
// `assignments`, for assign() to apply after a file and the environment.
void add_setting_options(CLI::App& command, const Settings& settings,
                         std::vector<std::string>& assignments);

}  // namespace attend
