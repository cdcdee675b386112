#pragma once

#include <string>

#include "attend/base/folder_lock.h"

namespace attend {

// Locks the folder of --out for this process. Creates it if it does not exist, and removes
// leftovers of killed commands. Error if it is a file, cannot be created, or is in use by another
// process.
FolderLock take_out_folder(const std::string& folder);

}  // namespace attend
