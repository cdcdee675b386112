#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "attend/base/files.h"

namespace attend {

// Option for a file to write. Error before any work if the file cannot be written.
inline CLI::Option* add_output_file(CLI::App& command, const std::string& name, std::string& path,
                                    const std::string& help) {
  return command.add_option(name, path, help)
      ->type_name("FILE")
      ->check([](const std::string& value) {
        check_writable(value);
        return std::string();
      });
}

}  // namespace attend
