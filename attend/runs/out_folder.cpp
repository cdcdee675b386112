#include "attend/runs/out_folder.h"

#include <filesystem>
#include <system_error>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {

FolderLock take_out_folder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error))
    fail("--out {}: is a file; a folder is wanted", folder);
  std::filesystem::create_directories(folder, error);
  if (error)
    fail("--out {}: cannot be created: {}; choose another folder", folder, error.message());
  FolderLock lock(folder);
  remove_temporary_files(folder);
  return lock;
}

}  // namespace attend
