#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace attend {

// Reads the bytes of a file in order and unpacks gzip and xz, which are detected by the first
// bytes, not by the name. Errors begin with the file's name: errors of InputFile; packed data that
// is truncated, damaged (checksums are verified) or followed by other bytes; output over
// `maximum_bytes`; output over 16 MiB and over 200 times the input; files packed by other programs,
// and forms that are not plain text, such as workbooks, Parquet and UTF-16.
class ByteReader {
 public:
  static constexpr int64_t no_limit = int64_t{1} << 62;

  explicit ByteReader(const std::string& path, int64_t maximum_bytes = no_limit);
  // Reads the bytes of a file, which must outlive the reader; messages call it `name`.
  ByteReader(std::string_view bytes, std::string name, int64_t maximum_bytes = no_limit);
  ~ByteReader();
  ByteReader(ByteReader&&) noexcept;
  ByteReader& operator=(ByteReader&&) noexcept;

  // Reads the next bytes, at most `size`. Returns their number; 0 only at the end.
  size_t read(char* bytes, size_t size);
  std::string read_all();
  const std::string& name() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the contents of a file, unpacked. Errors as ByteReader.
std::string read_packed(const std::string& path, int64_t maximum_bytes = int64_t{1} << 32);

// Calls `visit` with the name and the bytes of each regular file of a tar archive, packed or not,
// in order. Skips folders and links. Errors name the archive: not a tar; a file of over
// `maximum_file` bytes; over a million entries; sparse files of together over 16 MiB and over 200
// times the archive's size.
void visit_tar(ByteReader archive,
               const std::function<void(const std::string& name, std::string bytes)>& visit,
               int64_t maximum_file = int64_t{1} << 30);

}  // namespace attend
