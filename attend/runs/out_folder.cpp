#include "attend/runs/out_folder.h"

#include "attend/base/files.h"

namespace attend {

FolderLock take_out_folder(const std::string& folder) {
  create_folder(folder, "--out " + folder);
  FolderLock lock(folder);
  remove_temporary_files(folder);
  return lock;
}

}  // namespace attend
