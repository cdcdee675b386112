#pragma once

#include <string>

namespace attend {

// The right to write into a folder, which one object of one process has at a time: a lock of the
// system on a file in the folder. It ends when the process ends in any way. Readers need none.
// Where the file cannot be made, or the file system has no locks or tells a file by no steady
// number, every process has the right.
class FolderLock {
 public:
  static constexpr const char* name = ".attend.lock";

  // Error, naming the process that has it, this one included.
  explicit FolderLock(std::string folder);
  FolderLock(FolderLock&& other) noexcept;
  ~FolderLock();  // removes the file
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  // False where the file was removed meanwhile, so that it has to be made again.
  bool acquire();

  std::string folder_, path_;
  std::string held_;  // the folder's only name, while this object has the right; or empty
  int descriptor_ = -1;
};

}  // namespace attend
