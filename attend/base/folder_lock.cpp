#include "attend/base/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

[[noreturn]] void fail_for(const std::string& folder, pid_t holder) {
  // 0: the process is in another container or has just ended.
  const std::string who = holder > 0 ? fmt::format("process {}", holder) : "another process";
  fail("{}: {} is writing there; wait until it has ended, stop it, or choose another folder",
       folder, who);
}

// The system lock belongs to the whole process: it would grant a second one here, and closing that
// file would release the first. Hence the process keeps its own list. The process number in it
// keeps child processes from inheriting entries.
class HeldFolders {
 public:
  bool add(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    return folders_.emplace(::getpid(), folder).second;
  }
  void remove(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    folders_.erase({::getpid(), folder});
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<pid_t, std::string>> folders_;
};

HeldFolders& held_folders() {
  static HeldFolders folders;
  return folders;
}

// Canonical path of a folder.
std::string only_name(const std::string& folder) {
  std::error_code error;
  const auto name = std::filesystem::canonical(folder, error);
  return error ? folder : name.string();
}

// If the file differs at every look, its file system lacks stable inode numbers.
constexpr int max_attempts = 1000;

bool is_file_at(const std::string& path, int descriptor) {
  struct stat open, there;
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

}  // namespace

FolderLock::FolderLock(std::string folder)
    : folder_(std::move(folder)), path_(folder_ + '/' + name), held_(only_name(folder_)) {
  if (!held_folders().add(held_)) fail_for(folder_, ::getpid());
  try {
    for (int attempt = 0; attempt < max_attempts && !acquire(); ++attempt) {
    }
  } catch (...) {
    held_folders().remove(held_);
    throw;
  }
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      held_(std::exchange(other.held_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) {
    // The order matters: a process that has already opened the file then finds it removed.
    ::unlink(path_.c_str());
    ::close(descriptor_);
  }
  if (!held_.empty()) held_folders().remove(held_);
}

bool FolderLock::acquire() {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return true;
  // Only this kind of lock reports its holder. It ends when the process closes the file anywhere;
  // no other code may open the file.
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(descriptor_, F_SETLK, &lock) != 0 && (errno == EACCES || errno == EAGAIN)) {
    const bool has_holder = ::fcntl(descriptor_, F_GETLK, &lock) == 0;
    ::close(std::exchange(descriptor_, -1));
    // The holder may have ended in between.
    if (has_holder && lock.l_type == F_UNLCK) return false;
    fail_for(folder_, has_holder ? lock.l_pid : 0);
  }
  if (is_file_at(path_, descriptor_)) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

}  // namespace attend
