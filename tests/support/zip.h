#pragma once

#include <gtest/gtest.h>
#include <zip.h>

#include <string>
#include <vector>

#include "tests/support/files.h"

namespace attend::test {

struct ZipEntry {
  std::string name, bytes;
  zip_int32_t method = ZIP_CM_STORE;
  bool encrypted = false;
};

// An archive of these entries, as another program would write it.
inline std::string zip_of(const std::vector<ZipEntry>& entries) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.zip";
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE, &error);
  for (const ZipEntry& entry : entries) {
    zip_source_t* source = zip_source_buffer(archive, entry.bytes.data(), entry.bytes.size(), 0);
    const auto index =
        static_cast<zip_uint64_t>(zip_file_add(archive, entry.name.c_str(), source, 0));
    zip_set_file_compression(archive, index, entry.method, 0);
    if (entry.encrypted) zip_file_set_encryption(archive, index, ZIP_EM_AES_256, "secret");
  }
  EXPECT_EQ(zip_close(archive), 0);
  return contents(path);
}

}  // namespace attend::test
