#pragma once

#include <string>

namespace attend {

// Exclusive right to write into a folder: a system lock on a file in the folder, held by one object
// of one process at a time. It ends when the process ends, for any reason. Readers do not need it.
// If the file cannot be created, or the file system lacks locks or stable inode numbers, every
// process gets the right.
class FolderLock {
 public:
  static constexpr const char* name = ".attend.lock";

  // Error if the lock is held, also by this process; the message names the process.
  explicit FolderLock(std::string folder);
  FolderLock(FolderLock&& other) noexcept;
  ~FolderLock();  // removes the file
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  // Returns false if the file was removed meanwhile and must be created again.
  bool acquire();

  std::string folder_, path_;
  std::string held_;  // canonical path of the folder while the lock is held; otherwise empty
  int descriptor_ = -1;
};

}  // namespace attend
