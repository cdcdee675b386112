#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace attend {

// The bytes of a file one after another, unpacked on the way where they are gzip's or xz's: how
// the file begins tells, whatever its name is. Errors, with the file's name in front: those of
// InputFile; packed data that is cut off, damaged (checksums are compared) or followed by other
// bytes; an output over `maximum_bytes`; an output over 16 MiB and over 200 times the input; a file
// that bzip2, zstd, lz4, compress or 7-Zip packed.
class ByteReader {
 public:
  static constexpr int64_t no_limit = int64_t{1} << 62;

  explicit ByteReader(const std::string& path, int64_t maximum_bytes = no_limit);
  // Reads the bytes of a file, which must outlive the reader; messages call it `name`.
  ByteReader(std::string_view bytes, std::string name, int64_t maximum_bytes = no_limit);
  ~ByteReader();
  ByteReader(ByteReader&&) noexcept;
  ByteReader& operator=(ByteReader&&) noexcept;

  // The next bytes, at most `size` of them; 0 at the end alone.
  size_t read(char* bytes, size_t size);
  std::string read_all();
  const std::string& name() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The whole file, unpacked. Errors as ByteReader.
std::string read_packed(const std::string& path, int64_t maximum_bytes = int64_t{1} << 32);

// Calls `visit` with the name and the bytes of each regular file of a tar archive (itself packed or
// not), in their order; folders and links are passed over. Error, naming the archive, on what is no
// tar, on a file of over `maximum_file` bytes, on files that are together over 16 MiB and over 200
// times the tar's size (sparse ones), and on over a million entries.
void visit_tar(ByteReader archive,
               const std::function<void(const std::string& name, std::string bytes)>& visit,
               int64_t maximum_file = int64_t{1} << 30);

}  // namespace attend
