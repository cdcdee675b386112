#pragma once

#include <string>

#include "attend/base/folder_lock.h"

namespace attend {

// Takes the folder of --out for this process alone: creates it where it is not there, and removes
// what killed commands left in it. Error where it is a file or cannot be created, or where another
// process is writing there.
FolderLock take_out_folder(const std::string& folder);

}  // namespace attend
