#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace attend {

// A file, read from its beginning on. Error when it is missing, no regular file or unreadable.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int64_t size() const { return size_; }  // when it was opened
  // The next bytes, at most `size` of them; 0 at the end.
  size_t read(char* bytes, size_t size);

 private:
  std::string path_;
  int descriptor_;
  int64_t size_ = 0;
};

// The whole file. Error when it is missing, no regular file, unreadable, or larger than
// `maximum_bytes`.
std::string read_file(const std::string& path, int64_t maximum_bytes = int64_t{1} << 32);

// Replaces the file crash-safely: a temporary file in the same folder, fsync, rename, fsync of the
// folder. The mode of a file that is replaced stays. On Error (disk full, limit of a file's size,
// no permission, standard output or error goes there) the old file stays, and nothing is left.
void write_file(const std::string& path, std::string_view bytes);

// Creates a folder, and those above it, where it is not there. Error where it is a file or cannot
// be created; the message begins with `shown`.
void create_folder(const std::string& folder, const std::string& shown);

// Removes the temporary files that killed processes left in the folder.
void remove_temporary_files(const std::string& folder);

// Returns the names in a folder, which must exist, except for temporary files and its lock.
std::set<std::string> names_in(const std::string& folder);

}  // namespace attend
