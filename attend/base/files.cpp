#include "attend/base/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/folder_lock.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

std::string reason(int code) { return std::generic_category().message(code); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  bool close() { return ::close(release()) == 0; }

 private:
  int number_;
};

[[noreturn]] void fail_to_write(const std::string& path, const fs::path& folder, size_t bytes,
                                int code) {
  if (code == ENOSPC || code == EDQUOT) {
    fail("{}: the disk is full; free {} bytes in {} or write somewhere else", path, bytes,
         folder.string());
  }
  if (code == EFBIG) {
    fail(
        "{}: cannot be written: it has {} bytes, and files of this process may not be that large; "
        "raise the limit (ulimit -f)",
        path, bytes);
  }
  if (code == ENOENT) {
    fail("{}: cannot be written: the folder {} does not exist; create it first", path,
         folder.string());
  }
  fail("{}: cannot be written in {}: {}", path, folder.string(), reason(code));
}

// Returns whether a write would exceed the file size limit and raise SIGXFSZ.
bool is_over_limit(size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         bytes > limit.rlim_cur;
}

// Returns 0 or the errno of the failure.
int write_all(int descriptor, std::string_view bytes) {
  // Linux writes at most 2 GiB per call.
  constexpr size_t piece = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), std::min(bytes.size(), piece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// Returns the name of the standard stream that goes to this file; null if none does.
const char* standard_stream(const std::string& path) {
  struct stat file, stream;
  if (::stat(path.c_str(), &file) != 0) return nullptr;
  for (const auto& [number, name] :
       {std::pair(STDOUT_FILENO, "standard output"), std::pair(STDERR_FILENO, "standard error")})
    if (::fstat(number, &stream) == 0 && stream.st_dev == file.st_dev &&
        stream.st_ino == file.st_ino)
      return name;
  return nullptr;
}

// Returns the file that a write to the path replaces or creates. A link stays; its target is
// replaced.
fs::path replaced_file(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return path;
  if (fs::is_directory(path, error)) fail("{}: is a folder; a file is wanted", path);
  if (!fs::is_regular_file(path, error))
    fail("{}: is not a regular file, so it cannot be replaced", path);
  if (const char* stream = standard_stream(path))
    fail("{}: is already open as {}; name another file", path, stream);
  const fs::path target = fs::canonical(path, error);
  return error ? fs::path(path) : target;
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

constexpr std::string_view temporary_start = ".attend-", temporary_end = ".tmp";

// Returns the process that created the temporary file; 0 for other names.
pid_t writer_of(std::string_view name) {
  if (!name.starts_with(temporary_start) || !name.ends_with(temporary_end)) return 0;
  name.remove_prefix(temporary_start.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  return error == std::errc() && *end == '-' ? std::max(process, 0) : 0;
}

// Creates a file with a new name. Its mode follows the umask, unlike with mkstemp.
int create_temporary(const fs::path& folder, std::string& name) {
  for (int attempt = 0; attempt < 10000; ++attempt) {
    const std::string own =
        fmt::format("{}{}-{}{}", temporary_start, ::getpid(), attempt, temporary_end);
    name = (folder / own).string();
    const int descriptor =
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

int fill_and_rename(int number, const std::string& temporary, const std::string& target,
                    std::string_view bytes) {
  Descriptor descriptor(number);
  struct stat replaced;
  // The mode is set before the file has contents. Failure is ignored: a file system may lack modes.
  if (::stat(target.c_str(), &replaced) == 0)
    static_cast<void>(::fchmod(descriptor.get(), replaced.st_mode & 0777));
  if (const int code = write_all(descriptor.get(), bytes)) return code;
  if (::fsync(descriptor.get()) != 0) return errno;
  if (!descriptor.close()) return errno;
  return ::rename(temporary.c_str(), target.c_str()) == 0 ? 0 : errno;
}

void sync_folder(const fs::path& folder, const std::string& path) {
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system does not support this. If the folder is writable but not readable, it
  // cannot be opened; the rename has succeeded anyway.
  if (descriptor.get() < 0 || ::fsync(descriptor.get()) == 0 || errno == EINVAL) return;
  fail("{}: was written, but the folder could not be flushed: {}", path, reason(errno));
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a named pipe would wait for a writer.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) {
    if (errno == ENOENT) fail("{}: no such file", path);
    fail("{}: cannot be opened: {}", path, reason(errno));
  }
  struct stat status;
  if (::fstat(descriptor.get(), &status) != 0) fail("{}: {}", path, reason(errno));
  if (S_ISDIR(status.st_mode)) fail("{}: is a folder; a file is wanted", path);
  if (!S_ISREG(status.st_mode)) fail("{}: is not a regular file", path);
  size_ = status.st_size;
  descriptor_ = descriptor.release();
}

InputFile::~InputFile() { ::close(descriptor_); }

size_t InputFile::read(char* bytes, size_t size) {
  while (true) {
    const ssize_t count = ::read(descriptor_, bytes, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) fail("{}: cannot be read: {}", path_, reason(errno));
  }
}

std::string read_file(const std::string& path, int64_t maximum_bytes) {
  InputFile file(path);
  if (file.size() > maximum_bytes)
    fail("{}: has {} bytes; at most {} are read", path, file.size(), maximum_bytes);
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const size_t count = file.read(bytes.data() + size, bytes.size() - size);
    if (count == 0) break;
    size += count;
  }
  bytes.resize(size);
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  const fs::path target = replaced_file(path), folder = folder_of(target);
  if (is_over_limit(bytes.size())) fail_to_write(path, folder, bytes.size(), EFBIG);
  std::string temporary;
  const int descriptor = create_temporary(folder, temporary);
  if (descriptor < 0) fail_to_write(path, folder, bytes.size(), errno);
  if (const int code = fill_and_rename(descriptor, temporary, target.string(), bytes)) {
    ::unlink(temporary.c_str());
    fail_to_write(path, folder, bytes.size(), code);
  }
  sync_folder(folder, path);
}

void check_writable(const std::string& path) {
  const fs::path folder = folder_of(replaced_file(path));
  std::string temporary;
  const Descriptor descriptor(create_temporary(folder, temporary));
  if (descriptor.get() < 0) fail_to_write(path, folder, 0, errno);
  ::unlink(temporary.c_str());
}

void create_folder(const std::string& folder, const std::string& shown) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error))
    fail("{}: is a file; name a folder to write into", shown);
  std::filesystem::create_directories(folder, error);
  if (error) fail("{}: cannot be created: {}; choose another folder", shown, error.message());
}

void remove_temporary_files(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const pid_t writer = writer_of(entry.path().filename().native());
    if (writer == 0) continue;
    // A process number may be reused, even by this process, which has no temporary file open now.
    const bool gone = writer == ::getpid() || (::kill(writer, 0) != 0 && errno == ESRCH);
    if (gone) fs::remove(entry.path(), ignored);
  }
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name != FolderLock::name && writer_of(name) == 0) names.insert(std::move(name));
  }
  return names;
}

}  // namespace attend
