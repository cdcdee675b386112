#include "attend/files/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "attend/files/npy.h"
#include "tests/support/zip.h"

namespace attend {
namespace npz_test {

using test::error_of;
using testing::HasSubstr;

std::string message(const std::string& bytes) {
  return error_of([&] { parse_npz(bytes, "a.npz"); });
}

const at::Tensor counted = at::arange(600, at::kDouble).view({20, 30});

TEST(Npz, ReadsBackWhatItWrites) {
  const NamedTensors tensors = {{"context", counted},
                                {"lse", at::zeros({0, 3})},
                                {"grad_W_q", at::ones({}, at::kFloat)},
                                {"näme/with slash", at::tensor({1, 0}).to(at::kBool)}};
  const std::string bytes = format_npz(tensors);
  const NamedTensors back = parse_npz(bytes, "a.npz");
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(back.at(name).equal(tensor)) << name;
  EXPECT_EQ(format_npz(back), bytes);
  EXPECT_TRUE(parse_npz(format_npz({}), "a.npz").empty());
}

TEST(Npz, WritesAndReadsFiles) {
  const test::TemporaryFolder folder;
  write_npz(folder / "a.npz", {{"x", counted}});
  EXPECT_TRUE(read_npz(folder / "a.npz").at("x").equal(counted));
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(Npz, ReadsDeflatedArrays) {
  const std::string bytes = test::zip_of({{"x.npy", format_npy(counted), ZIP_CM_DEFLATE}});
  EXPECT_LT(bytes.size(), counted.nbytes());
  EXPECT_TRUE(parse_npz(bytes, "a.npz").at("x").equal(counted));
}

TEST(Npz, RefusesWhatIsNoArchive) {
  EXPECT_THAT(message(""), HasSubstr("a.npz: is empty"));
  EXPECT_THAT(message("hello"), HasSubstr("a.npz: is not an .npz file"));
  const std::string bytes = format_npz({{"x", counted}});
  for (const size_t cut : {size_t{10}, bytes.size() / 2, bytes.size() - 1})
    EXPECT_THAT(message(bytes.substr(0, cut)), HasSubstr("a.npz: is not an .npz file")) << cut;
}

TEST(Npz, RefusesOtherEntries) {
  EXPECT_THAT(message(test::zip_of({{"x.txt", "hello"}})),
              HasSubstr("a.npz: 'x.txt': is not an array"));
  EXPECT_THAT(message(test::zip_of({{"x.npy", "hello"}})),
              HasSubstr("a.npz: 'x.npy': is not a .npy file"));
  EXPECT_THAT(message(test::zip_of({{"x\n.npy", "hello"}})), HasSubstr("\\x0a"));
  EXPECT_THAT(message(test::zip_of({{"x.npy", format_npy(counted), ZIP_CM_STORE, true}})),
              HasSubstr("'x.npy': is encrypted"));
  EXPECT_THAT(message(test::zip_of({{"x.npy", format_npy(counted), ZIP_CM_BZIP2}})),
              HasSubstr("is compressed by method 12"));
}

// Overwrites the field at `offset` of every header with this signature.
std::string with_field(std::string bytes, const std::string& signature, size_t offset,
                       const std::string& value) {
  for (size_t position = bytes.find(signature); position != std::string::npos;
       position = bytes.find(signature, position + 1))
    bytes.replace(position + offset, value.size(), value);
  return bytes;
}

TEST(Npz, RefusesLies) {
  const std::string bytes = test::zip_of({{"x.npy", format_npy(counted), ZIP_CM_DEFLATE}});
  const std::string local = "PK\3\4", central = "PK\1\2";
  // Wrong sizes: 4 GB, and one byte too few.
  std::string huge = with_field(bytes, central, 24, "\xf0\xff\xff\xff");
  huge = with_field(huge, local, 22, "\xf0\xff\xff\xff");
  EXPECT_THAT(message(huge),
              HasSubstr("is said to have 4294967280 bytes, more than the archive can hold"));
  const auto size = static_cast<uint32_t>(format_npy(counted).size() - 1);
  const std::string less(reinterpret_cast<const char*>(&size), 4);
  EXPECT_FALSE(message(with_field(with_field(bytes, central, 24, less), local, 22, less)).empty());
  std::string damaged = format_npz({{"x", counted}});
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_THAT(message(damaged), HasSubstr("'x.npy': is damaged: CRC error"));
}

// Peak address space of this process in kilobytes.
int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmPeak:") {
      int64_t peak = 0;
      status >> peak;
      return peak;
    }
  return 0;
}

TEST(Npz, TakesNoMemoryForASizeThatIsALie) {
  // Random bits, which deflate cannot compress: the file is large enough for a size of 1 GB.
  at::manual_seed(1);
  const at::Tensor noise = at::randint(256, {1 << 21}, at::kByte);
  const std::string bytes = test::zip_of({{"x.npy", format_npy(noise), ZIP_CM_DEFLATE}});
  const std::string gigabyte = {'\0', '\0', '\0', '\x40'};
  const std::string lie =
      with_field(with_field(bytes, "PK\1\2", 24, gigabyte), "PK\3\4", 22, gigabyte);
  const int64_t before = peak_memory();
  EXPECT_THAT(message(lie), HasSubstr("'x.npy': is shorter than the archive says"));
  EXPECT_LT(peak_memory() - before, 1 << 18) << "kilobytes";
}

std::string little_endian(size_t number, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i) result += static_cast<char>(number >> (8 * i) & 0xff);
  return result;
}

// An archive of three entries that share the packed data of `one`, an archive of "x.npy". The
// header of each entry is in the extra field of the entry before.
std::string shared_entries(const std::string& one) {
  const size_t central = one.find("PK\1\2"), end = one.find("PK\5\6");
  const size_t name_end = 30 + 5;
  const size_t extra =
      static_cast<unsigned char>(one[28]) + 256U * static_cast<unsigned char>(one[29]);
  const std::string data = one.substr(name_end + extra, central - name_end - extra);
  std::string headers, entries;
  for (const char name : {'z', 'y', 'x'}) {
    std::string header = one.substr(0, name_end);
    header[30] = name;
    if (!headers.empty()) {
      header += "AA" + little_endian(headers.size(), 2) + headers;
      header.replace(28, 2, little_endian(header.size() - name_end, 2));
    } else {
      header.replace(28, 2, little_endian(0, 2));
    }
    headers = header;
  }
  for (size_t i = 0; i < 3; ++i) {
    std::string entry = one.substr(central, end - central);
    entry.replace(42, 4, little_endian(i * (name_end + 4), 4));
    entry[46] = static_cast<char>('x' + i);
    entries += entry;
  }
  std::string record = one.substr(end);
  record[8] = record[10] = 3;
  record.replace(12, 4, little_endian(entries.size(), 4));
  record.replace(16, 4, little_endian(headers.size() + data.size(), 4));
  return headers + data + entries + record;
}

TEST(Npz, BoundsAllArraysTogether) {
  const std::string zeros = format_npy(at::zeros({1 << 20}, at::kByte));
  const std::string one = test::zip_of({{"x.npy", zeros, ZIP_CM_DEFLATE}});
  EXPECT_EQ(parse_npz(one, "a.npz").at("x").numel(), 1 << 20);
  EXPECT_THAT(message(shared_entries(one)), HasSubstr("'y.npy': is said to have 1048"));
}

TEST(Npz, RefusesNamesTwice) {
  std::string bytes =
      test::zip_of({{"x.npy", format_npy(counted)}, {"y.npy", format_npy(counted)}});
  for (size_t position = bytes.find("y.npy"); position != std::string::npos;
       position = bytes.find("y.npy"))
    bytes[position] = 'x';
  EXPECT_THAT(message(bytes), testing::StartsWith("a.npz: is not an .npz file"));
}

}  // namespace npz_test
}  // namespace attend
