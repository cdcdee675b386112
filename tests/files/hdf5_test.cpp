#include "attend/files/hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/hdf5.h"

namespace attend {
namespace hdf5_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const std::map<std::string, at::Tensor>& datasets() {
  static const std::map<std::string, at::Tensor> all = {
      {"bytes", at::arange(5, at::kByte)},
      {"layers/dense/vars/0", at::arange(6, at::kFloat).view({2, 3})},
      {"layers/dense/vars/1", at::arange(3, at::kDouble)},
      {"layers/empty", at::zeros({0, 4})},
      {"optimizer/step", at::full({}, 17, at::kLong)}};
  return all;
}

std::string file_bytes() { return test::Hdf5Writer::format(datasets()); }

std::string message(std::string bytes, const std::string& dataset = "layers/dense/vars/0") {
  return error_of([&] { (void)Hdf5File::parse(std::move(bytes), "a.h5").tensor(dataset); });
}

// Replaces the bytes after `before`, which occurs once.
std::string with(const std::string& before, const std::string& bytes) {
  std::string all = file_bytes();
  const size_t found = all.find(before);
  EXPECT_NE(found, std::string::npos);
  EXPECT_EQ(all.find(before, found + 1), std::string::npos);
  return all.replace(found + before.size(), bytes.size(), bytes);
}

TEST(Hdf5, ReadsGroupsAndNumbers) {
  const Hdf5File file = Hdf5File::parse(file_bytes(), "a.h5");
  EXPECT_THAT(file.names(), ElementsAre("bytes", "layers/dense/vars/0", "layers/dense/vars/1",
                                        "layers/empty", "optimizer/step"));
  for (const auto& [name, expected] : datasets()) {
    const at::Tensor tensor = file.tensor(name);
    EXPECT_EQ(tensor.scalar_type(), expected.scalar_type()) << name;
    EXPECT_TRUE(tensor.equal(expected)) << name;
  }
}

TEST(Hdf5, NamesWhatItDoesNotRead) {
  EXPECT_THAT(message("hello"), HasSubstr("a.h5: is not an HDF5 file"));
  EXPECT_THAT(message(file_bytes(), "layers/none"),
              HasSubstr("a.h5: has no dataset 'layers/none'"));
  EXPECT_THAT(message(with("\x89HDF\r\n\x1a\n", "\2")), HasSubstr("version 2 of the superblock"));
  // Offsets in the type and the layout of the first dataset of the file, "bytes".
  const std::string type = std::string("\3\0\x10\0\0\0\0\0", 8),
                    layout("\x08\0\x18\0\0\0\0\0\3", 9);
  const std::string bytes = file_bytes();
  const size_t type_at = bytes.find(type) + type.size(),
               layout_at = bytes.find(layout) + layout.size();
  const auto changed = [&](size_t place, char byte) {
    std::string all = bytes;
    all[place] = byte;
    return message(all, "bytes");
  };
  EXPECT_THAT(changed(type_at, 0x13), HasSubstr("'bytes': is of a type that is not read"));
  EXPECT_THAT(changed(layout_at, 2), HasSubstr("'bytes': is stored in chunks"));
  EXPECT_THAT(changed(layout_at - 9, 0x0b),
              HasSubstr("'bytes': is stored by filters, such as gzip"));
  EXPECT_THAT(changed(layout_at + 9, 4), HasSubstr("its shape [5] and its 4 bytes disagree"));
}

TEST(Hdf5, RefusesADamagedFile) {
  const std::string bytes = file_bytes();
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    const std::string text = error_of([&] {
      const Hdf5File file = Hdf5File::parse(bytes.substr(0, cut), "a.h5");
      for (const std::string& name : file.names()) (void)file.tensor(name);
    });
    EXPECT_THAT(text, testing::StartsWith("a.h5: ")) << cut;
  }
  // A group is its own member: the address of "bytes" becomes the root's.
  std::string loop = bytes;
  const size_t list = loop.rfind("SNOD") + 8;
  loop.replace(list + 8, 8, loop.substr(64, 8));
  EXPECT_THAT(message(loop), HasSubstr("twice; only trees of groups are read"));
}

}  // namespace hdf5_test
}  // namespace attend
