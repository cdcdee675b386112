#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <utility>

#include "attend/base/error.h"
#include "attend/files/compressed.h"

namespace attend {
namespace {

constexpr int64_t maximum_entries = 1'000'000;

// Limits on the growth by sparse files, as in ByteReader for packed bytes.
constexpr int64_t harmless_sparse_bytes = int64_t{16} << 20;
constexpr int64_t maximum_sparse_growth = 200;

// Bytes for libarchive. No exception may cross its C code.
struct ByteSource {
  ByteReader* bytes;
  std::array<char, 1 << 16> buffer;
  int64_t read;
  std::exception_ptr problem;
};

la_ssize_t read_some(archive* /*reader*/, void* data, const void** block) {
  auto* source = static_cast<ByteSource*>(data);
  *block = source->buffer.data();
  try {
    const size_t count = source->bytes->read(source->buffer.data(), source->buffer.size());
    source->read += static_cast<int64_t>(count);
    return static_cast<la_ssize_t>(count);
  } catch (...) {
    source->problem = std::current_exception();
    return ARCHIVE_FATAL;
  }
}

class Tar {
 public:
  Tar(ByteReader& bytes, int64_t maximum_file)
      : name_(bytes.name()), maximum_file_(maximum_file), reader_(archive_read_new()) {
    source_.bytes = &bytes;
    if (reader_ == nullptr) throw std::bad_alloc();
    archive_read_support_format_tar(reader_.get());
    check(archive_read_open(reader_.get(), &source_, nullptr, &read_some, nullptr));
  }

  // Returns the next entry; nullptr at the end.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(reader_.get(), &entry);
    if (code == ARCHIVE_EOF) return nullptr;
    check(code);
    if (++entries_ > maximum_entries) fail("{}: over {} entries", name_, maximum_entries);
    return entry;
  }

  std::string path(archive_entry* entry) const {
    const char* path = archive_entry_pathname(entry);
    // The locale of the program may not be able to represent the name.
    if (path == nullptr) path = archive_entry_pathname_utf8(entry);
    if (path == nullptr) fail("{}: entry {} has no name", name_, entries_);
    return path;
  }

  // Reads piece by piece: holes of a sparse file are zero, and its declared size proves nothing.
  std::string bytes(archive_entry* entry, const std::string& path) {
    std::string bytes;
    std::array<char, 1 << 16> piece;
    while (true) {
      const la_ssize_t count = archive_read_data(reader_.get(), piece.data(), piece.size());
      if (count == 0) break;
      if (count < 0) check(static_cast<int>(count));
      check_size(static_cast<int64_t>(bytes.size()) + count, path);
      bytes.append(piece.data(), static_cast<size_t>(count));
    }
    // libarchive does not return trailing zeros.
    const int64_t size = std::max<int64_t>(archive_entry_size(entry), std::ssize(bytes));
    check_size(size, path);
    bytes.resize(static_cast<size_t>(size));
    given_ += size;
    return bytes;
  }

 private:
  // Checks the size of a file against the number of bytes read.
  void check_size(int64_t size, const std::string& path) const {
    if (size > maximum_file_)
      fail("{}: {} has over {} bytes", name_, in_quotes(path), maximum_file_);
    const int64_t all = given_ + size;
    if (all > harmless_sparse_bytes && all / maximum_sparse_growth > source_.read)
      fail("{}: {}: the files come to over {} times the archive's size; such are not read", name_,
           in_quotes(path), maximum_sparse_growth);
  }

  void check(int code) const {
    if (code == ARCHIVE_OK || code == ARCHIVE_WARN) return;
    if (source_.problem) std::rethrow_exception(source_.problem);
    const char* reason = archive_error_string(reader_.get());
    fail("{}: cannot be read as tar, after {} entries: {}", name_, entries_,
         in_quotes(reason == nullptr ? "no reason given" : reason));
  }

  struct Closer {
    void operator()(archive* reader) const { archive_read_free(reader); }
  };

  std::string name_;
  int64_t maximum_file_;
  int64_t entries_ = 0;
  int64_t given_ = 0;  // bytes of the previous files
  ByteSource source_ = {};
  std::unique_ptr<archive, Closer> reader_;
};

}  // namespace

void visit_tar(ByteReader archive,
               const std::function<void(const std::string& name, std::string bytes)>& visit,
               int64_t maximum_file) {
  Tar tar(archive, maximum_file);
  while (archive_entry* entry = tar.next()) {
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr)
      continue;
    const std::string path = tar.path(entry);
    visit(path, tar.bytes(entry, path));
  }
}

}  // namespace attend
