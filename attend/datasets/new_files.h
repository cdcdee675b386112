#pragma once

#include <string>
#include <vector>

namespace attend {

struct NewFile {
  std::string path, bytes;
};

// Writes files as write_file(). Error, before any is written, if a file exists and has other bytes.
// So a command can be repeated, and replaces no data of the user.
void write_new_files(const std::vector<NewFile>& files);

}  // namespace attend
