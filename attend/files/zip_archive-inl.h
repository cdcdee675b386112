#pragma once

#include <zip.h>

#include <memory>
#include <string>
#include <string_view>

namespace attend::internal {

struct ZipDiscard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using ZipArchive = std::unique_ptr<zip_t, ZipDiscard>;
using ZipSource = std::unique_ptr<zip_source_t, ZipDiscard>;

// Returns a source over bytes that outlive it; null: an empty source that grows.
ZipSource zip_memory(const void* data, size_t size);

// Opens an archive, which owns the source. Error, naming the file and its kind, such as "an .npz
// file", if the source is not a ZIP archive.
ZipArchive open_zip(ZipSource source, int flags, const std::string& name, std::string_view kind);

}  // namespace attend::internal
