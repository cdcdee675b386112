#include "attend/datasets/new_files.h"

#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {

void write_new_files(const std::vector<NewFile>& files) {
  for (const auto& [path, bytes] : files)
    if (std::filesystem::is_regular_file(path) &&
        (std::filesystem::file_size(path) != bytes.size() || read_file(path) != bytes))
      fail("{}: exists with other contents; delete it, or choose another folder or name", path);
  for (const auto& [path, bytes] : files) write_file(path, bytes);
}

std::string NewFolder::add(const std::string& name, std::string bytes) {
  std::string path = (std::filesystem::path(folder_) / name).string();
  files_.push_back({path, std::move(bytes)});
  return path;
}

void NewFolder::write() const {
  create_folder(folder_, folder_);
  remove_temporary_files(folder_);
  write_new_files(files_);
}

}  // namespace attend
