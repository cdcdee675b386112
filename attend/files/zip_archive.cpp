#include <algorithm>

#include "attend/base/error.h"
#include "attend/files/zip_archive-inl.h"
#include "attend/files/zip_entries.h"

namespace attend {
namespace internal {
namespace {

constexpr zip_int64_t maximum_zip_entries = 10'000;
// Maximum growth in deflate: 258 bytes from 2 bits.
constexpr zip_uint64_t maximum_growth = 1032;
constexpr zip_uint64_t first_piece = 1 << 16;

// An error description of libzip.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ~ZipError() { zip_error_fini(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  zip_error_t* get() { return &error_; }
  std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_;
};

std::string read_entry(zip_t* archive, zip_uint64_t index, const zip_stat_t& status,
                       const std::string& where) {
  const std::unique_ptr<zip_file_t, ZipDiscard> file(zip_fopen_index(archive, index, 0));
  if (!file) fail("{}: cannot be read: {}", where, zip_strerror(archive));
  // The size in the archive may be false. Hence the buffer grows as bytes arrive, to at most twice
  // their number.
  std::string bytes;
  size_t size = 0;
  while (size < status.size) {
    if (size == bytes.size())
      bytes.resize(std::min(status.size, std::max(first_piece, 2 * zip_uint64_t{size})));
    const zip_int64_t count = zip_fread(file.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0) fail("{}: is damaged: {}", where, zip_file_strerror(file.get()));
    if (count == 0) fail("{}: is shorter than the archive says", where);
    size += static_cast<size_t>(count);
  }
  // The checksum is compared by the read that finds the end.
  char beyond = 0;
  const zip_int64_t count = zip_fread(file.get(), &beyond, 1);
  if (count < 0) fail("{}: is damaged: {}", where, zip_file_strerror(file.get()));
  if (count > 0) fail("{}: is longer than the archive says", where);
  return bytes;
}

// `room`: bytes left for all entries together, because entries may share packed bytes.
void visit_entry(zip_t* archive, zip_uint64_t index, zip_uint64_t& room, const std::string& name,
                 const ZipVisitor& visit) {
  zip_stat_t status;
  constexpr zip_uint64_t wanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive, index, 0, &status) != 0 || (status.valid & wanted) != wanted)
    fail("{}: entry {} cannot be read: {}", name, index, zip_strerror(archive));
  const std::string entry = status.name;
  const std::string where = fmt::format("{}: {}", name, in_quotes(entry));
  if ((status.valid & ZIP_STAT_ENCRYPTION_METHOD) && status.encryption_method != ZIP_EM_NONE)
    fail("{}: is encrypted; save it without a password", where);
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
    fail("{}: is compressed by method {}; only stored and deflated entries are read", where,
         status.comp_method);
  if (status.size > room)
    fail("{}: is said to have {} bytes, more than the archive can hold after the entries before it",
         where, status.size);
  room -= status.size;
  visit(entry, read_entry(archive, index, status, where));
}

}  // namespace

ZipSource zip_memory(const void* data, size_t size) {
  ZipError error;
  ZipSource source(zip_source_buffer_create(data, size, 0, error.get()));
  if (!source) fail("[zip] {}", error.text());
  return source;
}

ZipArchive open_zip(ZipSource source, int flags, const std::string& name, std::string_view kind) {
  ZipError error;
  ZipArchive archive(zip_open_from_source(source.get(), flags, error.get()));
  if (!archive) fail("{}: is not {}: {}", name, kind, error.text());
  // The archive owns its source from here on.
  static_cast<void>(source.release());
  return archive;
}

}  // namespace internal

void read_zip(std::string_view bytes, const std::string& name, std::string_view kind,
              const ZipVisitor& visit) {
  // libzip would treat an empty file as a new archive.
  if (bytes.empty()) fail("{}: is empty, so it is not {}", name, kind);
  const internal::ZipArchive archive = internal::open_zip(
      internal::zip_memory(bytes.data(), bytes.size()), ZIP_RDONLY | ZIP_CHECKCONS, name, kind);
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  if (entries > internal::maximum_zip_entries)
    fail("{}: has {} entries; at most {} are read", name, entries, internal::maximum_zip_entries);
  zip_uint64_t room = internal::maximum_growth * bytes.size();
  for (zip_int64_t index = 0; index < entries; ++index)
    internal::visit_entry(archive.get(), static_cast<zip_uint64_t>(index), room, name, visit);
}

}  // namespace attend
