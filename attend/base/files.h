#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace attend {

// Reads a file from its beginning. Error if it is missing, not a regular file or unreadable.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int64_t size() const { return size_; }  // when the file was opened
  // Reads the next bytes, at most `size`. Returns their number; 0 at the end.
  size_t read(char* bytes, size_t size);

 private:
  std::string path_;
  int descriptor_;
  int64_t size_ = 0;
};

// Returns the contents of a file. Error if it is missing, not a regular file, unreadable or larger
// than `maximum_bytes`.
std::string read_file(const std::string& path, int64_t maximum_bytes = int64_t{1} << 32);

// Replaces a file crash-safely: a temporary file in the same folder, fsync, rename, fsync of the
// folder. Keeps the mode of the replaced file. Error if the disk is full, the file size limit is
// exceeded, permission is missing, or standard output or error goes to the file. On Error the old
// file stays and no temporary file remains.
void write_file(const std::string& path, std::string_view bytes);

// Error if write_file could not write this path now, e.g. if its folder is missing.
void check_writable(const std::string& path);

// Creates a folder and its missing parents. Error if the path is a file or the folder cannot be
// created; the message begins with `shown`.
void create_folder(const std::string& folder, const std::string& shown);

// Removes the temporary files that killed processes left in the folder.
void remove_temporary_files(const std::string& folder);

// Returns the names in a folder, which must exist, without temporary files and the lock file.
std::set<std::string> names_in(const std::string& folder);

}  // namespace attend
