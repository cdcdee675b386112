#include "attend/files/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/files/npy.h"

namespace attend {
namespace {

constexpr std::string_view extension = ".npy";
constexpr zip_int64_t maximum_npz_entries = 10'000;
// Maximum growth in deflate: 258 bytes from 2 bits.
constexpr zip_uint64_t maximum_growth = 1032;
constexpr zip_uint64_t first_piece = 1 << 16;

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Source = std::unique_ptr<zip_source_t, Discard>;
using File = std::unique_ptr<zip_file_t, Discard>;

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

Archive open_archive(Source source, int flags, const std::string& name) {
  ZipError error;
  Archive archive(zip_open_from_source(source.get(), flags, error.get()));
  if (!archive) fail("{}: is not an .npz file: {}", name, error.text());
  // The archive owns its source from here on.
  static_cast<void>(source.release());
  return archive;
}

Source memory_source(const void* data, size_t size) {
  ZipError error;
  Source source(zip_source_buffer_create(data, size, 0, error.get()));
  if (!source) fail("[npz] {}", error.text());
  return source;
}

std::string read_entry(zip_t* archive, zip_uint64_t index, const zip_stat_t& status,
                       const std::string& where) {
  const File file(zip_fopen_index(archive, index, 0));
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
std::pair<std::string, at::Tensor> read_array(zip_t* archive, zip_uint64_t index,
                                              zip_uint64_t& room, const std::string& name) {
  zip_stat_t status;
  constexpr zip_uint64_t wanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive, index, 0, &status) != 0 || (status.valid & wanted) != wanted)
    fail("{}: entry {} cannot be read: {}", name, index, zip_strerror(archive));
  const std::string entry = status.name;
  const std::string where = fmt::format("{}: {}", name, in_quotes(entry));
  if (!entry.ends_with(extension))
    fail("{}: is not an array; an .npz file holds only .npy entries", where);
  if ((status.valid & ZIP_STAT_ENCRYPTION_METHOD) && status.encryption_method != ZIP_EM_NONE)
    fail("{}: is encrypted; save it without a password", where);
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
    fail("{}: is compressed by method {}; use numpy.savez or savez_compressed", where,
         status.comp_method);
  if (status.size > room)
    fail("{}: is said to have {} bytes, more than the archive can hold after the arrays before it",
         where, status.size);
  room -= status.size;
  const std::string bytes = read_entry(archive, index, status, where);
  return {entry.substr(0, entry.size() - extension.size()), parse_npy(bytes, where)};
}

// Returns the bytes written to `source`. The archive must be closed.
std::string written_bytes(zip_source_t* source) {
  zip_stat_t status;
  zip_stat_init(&status);
  if (zip_source_stat(source, &status) != 0 || zip_source_open(source) != 0)
    fail("[format_npz] {}", zip_error_strerror(zip_source_error(source)));
  std::string bytes(status.size, '\0');
  const zip_int64_t count = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (count != static_cast<zip_int64_t>(bytes.size()))
    fail("[format_npz] the archive is cut short");
  return bytes;
}

}  // namespace

NamedTensors parse_npz(std::string_view bytes, const std::string& name) {
  // libzip would treat an empty file as a new archive.
  if (bytes.empty()) fail("{}: is empty, so it is not an .npz file", name);
  const Archive archive =
      open_archive(memory_source(bytes.data(), bytes.size()), ZIP_RDONLY | ZIP_CHECKCONS, name);
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  if (entries > maximum_npz_entries)
    fail("{}: has {} arrays; at most {} are read", name, entries, maximum_npz_entries);
  NamedTensors tensors;
  zip_uint64_t room = maximum_growth * bytes.size();
  for (zip_int64_t index = 0; index < entries; ++index) {
    auto array = read_array(archive.get(), static_cast<zip_uint64_t>(index), room, name);
    const auto [entry, is_new] = tensors.insert(std::move(array));
    if (!is_new) fail("{}: array {} comes twice", name, in_quotes(entry->first));
  }
  return tensors;
}

NamedTensors read_npz(const std::string& path) { return parse_npz(read_file(path), path); }

std::string format_npz(const NamedTensors& tensors) {
  // libzip writes nothing for an archive without entries; this is the end record of a ZIP archive.
  if (tensors.empty()) return "PK\5\6" + std::string(18, '\0');
  // libzip reads the arrays when the archive is closed.
  std::vector<std::string> arrays;
  arrays.reserve(tensors.size());
  Source source = memory_source(nullptr, 0);
  zip_source_keep(source.get());
  Source kept(source.get());
  Archive archive = open_archive(std::move(source), ZIP_CREATE | ZIP_TRUNCATE, "[format_npz]");
  for (const auto& [name, tensor] : tensors) {
    arrays.push_back(format_npy(tensor));
    Source array = memory_source(arrays.back().data(), arrays.back().size());
    const zip_int64_t index = zip_file_add(archive.get(), (name + std::string(extension)).c_str(),
                                           array.get(), ZIP_FL_ENC_UTF_8);
    if (index < 0) fail("[format_npz] array {}: {}", in_quotes(name), zip_strerror(archive.get()));
    static_cast<void>(array.release());
    const auto entry = static_cast<zip_uint64_t>(index);
    // The earliest date in ZIP, which makes the bytes independent of the clock.
    constexpr zip_uint16_t first_day = (1 << 5) | 1;
    zip_file_set_dostime(archive.get(), entry, 0, first_day, 0);
    zip_set_file_compression(archive.get(), entry, ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0) fail("[format_npz] {}", zip_strerror(archive.get()));
  static_cast<void>(archive.release());
  return written_bytes(kept.get());
}

void write_npz(const std::string& path, const NamedTensors& tensors) {
  write_file(path, format_npz(tensors));
}

}  // namespace attend
