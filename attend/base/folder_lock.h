#pragma once

#include <string>

namespace attend {

// The right to write into a folder, one process's at a time, by a lock of the system on a file in
// it, which ends with the process however that ends. Those who only read need none. Where the file
// cannot be made, or the file system has no locks, everybody has the right.
class FolderLock {
 public:
  static constexpr const char* name = ".attend.lock";

  // Error, naming the process that has it.
  explicit FolderLock(std::string folder);
  FolderLock(FolderLock&& other) noexcept;
  ~FolderLock();  // removes the file
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  // Whether it is decided who has the lock; otherwise the file was removed meanwhile.
  bool acquire();

  std::string folder_, path_;
  int descriptor_ = -1;
};

}  // namespace attend
