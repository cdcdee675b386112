#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

// The whole file. Error when it is missing, no regular file, unreadable, or larger than
// `maximum_bytes`.
std::string read_file(const std::string& path, int64_t maximum_bytes = int64_t{1} << 32);

// Replaces the file crash-safely: a temporary file in the same folder, fsync, rename, fsync of the
// folder. On Error (disk full, no permission) the old file stands and nothing is left behind.
void write_file(const std::string& path, std::string_view bytes);

// Removes what a killed write_file may have left in the folder. Nobody else may be writing there.
void remove_temporary_files(const std::string& folder);

}  // namespace attend
