#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend::internal {

// Creates a folder to write data into, and removes what killed commands left there. Several
// processes may write into it at a time: each file is whole at every moment. Error where it is a
// file or cannot be created.
inline void create_folder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error))
    fail("{}: is a file; name a folder to write into", folder);
  std::filesystem::create_directories(folder, error);
  if (error) fail("{}: the folder cannot be created: {}", folder, error.message());
  remove_temporary_files(folder);
}

}  // namespace attend::internal
