#include "attend/base/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

[[noreturn]] void fail_for(const std::string& folder, pid_t holder) {
  // 0 where the process is in another container, or has just ended.
  const std::string who = holder > 0 ? fmt::format("process {}", holder) : "another process";
  fail("{}: {} is writing there; wait until it has ended, stop it, or choose another folder",
       folder, who);
}

bool is_file_at(const std::string& path, int descriptor) {
  struct stat open, there;
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

}  // namespace

FolderLock::FolderLock(std::string folder)
    : folder_(std::move(folder)), path_(folder_ + '/' + name) {
  while (!acquire()) {
  }
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  // In this order: a process that opened the file before finds that it is no longer there.
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

bool FolderLock::acquire() {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return true;
  // Only this kind of lock tells who has it. It ends when the process closes the file anywhere, so
  // no other code may open the file.
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(descriptor_, F_SETLK, &lock) != 0 && (errno == EACCES || errno == EAGAIN)) {
    const bool told = ::fcntl(descriptor_, F_GETLK, &lock) == 0;
    ::close(std::exchange(descriptor_, -1));
    // The holder may have ended in between.
    if (told && lock.l_type == F_UNLCK) return false;
    fail_for(folder_, told ? lock.l_pid : 0);
  }
  if (is_file_at(path_, descriptor_)) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

}  // namespace attend
