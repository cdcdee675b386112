#include "attend/files/npz.h"

#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/files/npy.h"
#include "attend/files/zip_archive-inl.h"
#include "attend/files/zip_entries.h"

namespace attend {
namespace {

using internal::ZipArchive;
using internal::ZipSource;

constexpr std::string_view extension = ".npy", kind = "an .npz file";

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
  NamedTensors tensors;
  read_zip(bytes, name, kind, [&](const std::string& entry, const std::string& array) {
    const std::string where = fmt::format("{}: {}", name, in_quotes(entry));
    if (!entry.ends_with(extension))
      fail("{}: is not an array; an .npz file holds only .npy entries", where);
    const auto [found, is_new] =
        tensors.emplace(entry.substr(0, entry.size() - extension.size()), parse_npy(array, where));
    if (!is_new) fail("{}: array {} comes twice", name, in_quotes(found->first));
  });
  return tensors;
}

NamedTensors read_npz(const std::string& path) { return parse_npz(read_file(path), path); }

std::string format_npz(const NamedTensors& tensors) {
  // libzip writes nothing for an archive without entries; this is the end record of a ZIP archive.
  if (tensors.empty()) return "PK\5\6" + std::string(18, '\0');
  // libzip reads the arrays when the archive is closed.
  std::vector<std::string> arrays;
  arrays.reserve(tensors.size());
  ZipSource source = internal::zip_memory(nullptr, 0);
  zip_source_keep(source.get());
  ZipSource kept(source.get());
  ZipArchive archive =
      internal::open_zip(std::move(source), ZIP_CREATE | ZIP_TRUNCATE, "[format_npz]", kind);
  for (const auto& [name, tensor] : tensors) {
    arrays.push_back(format_npy(tensor));
    ZipSource array = internal::zip_memory(arrays.back().data(), arrays.back().size());
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
