#pragma once

#include <string>

namespace attend {

// The right to write into a folder, which one process has at a time: a lock of the system on a file
// in the folder. It ends with the process, however that ends. Readers need none. Where the file
// cannot be made, or the file system has no locks, every process has the right.
class FolderLock {
 public:
  static constexpr const char* name = ".attend.lock";

  // Error, naming the process that has it.
  explicit FolderLock(std::string folder);
  FolderLock(FolderLock&& other) noexcept;
  ~FolderLock();  // removes the file
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  // False where the file was removed meanwhile, so that it has to be made again.
  bool acquire();

  std::string folder_, path_;
  int descriptor_ = -1;
};

}  // namespace attend
