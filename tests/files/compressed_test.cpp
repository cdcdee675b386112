#include "attend/files/compressed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace compressed_test {

using test::error_of;
using testing::HasSubstr;
using testing::StartsWith;

// Bytes that hardly compress and are unique enough to show misplaced data.
std::string noise(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

std::string unpacked(std::string_view bytes, int64_t maximum = ByteReader::no_limit) {
  return ByteReader(bytes, "a", maximum).read_all();
}

std::string message(std::string_view bytes, int64_t maximum = ByteReader::no_limit) {
  return error_of([&] { unpacked(bytes, maximum); });
}

TEST(ByteReader, UnpacksWhatItRecognises) {
  // Sizes around the buffer sizes.
  for (const size_t size : {0, 1, 3, 65535, 65536, 65537, 300000}) {
    const std::string bytes = noise(size);
    EXPECT_EQ(unpacked(bytes), bytes) << size;
    EXPECT_EQ(unpacked(test::gzip(bytes)), bytes) << size;
    EXPECT_EQ(unpacked(test::xz(bytes)), bytes) << size;
  }
}

TEST(ByteReader, ReadsFilesWhateverTheirName) {
  const test::TemporaryFolder folder;
  const std::string bytes = noise(200000);
  EXPECT_EQ(read_packed(folder.write("plain.gz", bytes)), bytes);
  EXPECT_EQ(read_packed(folder.write("gzip.txt", test::gzip(bytes))), bytes);
  EXPECT_EQ(read_packed(folder.write("xz.txt", test::xz(bytes))), bytes);
  EXPECT_THAT(error_of([&] { read_packed(folder / "none"); }), HasSubstr("no such file"));
}

TEST(ByteReader, NamesOtherPackings) {
  EXPECT_EQ(message("BZh91AY&SY and more"),
            "a: is packed by bzip2, which is not read; unpack it, or pack it by gzip or xz");
  EXPECT_THAT(message("\x28\xb5\x2f\xfd and more"), HasSubstr("by zstd"));
  EXPECT_EQ(unpacked("BZh9 is text"), "BZh9 is text");
}

TEST(ByteReader, NamesFormsThatAreNoText) {
  EXPECT_EQ(message("PK\x03\x04 and more"),
            "a: is a ZIP archive or an Excel workbook, which is not read; unpack it, or save the "
            "sheet as CSV");
  EXPECT_EQ(message("PAR1\x15 and more"),
            "a: is a Parquet file, which is not read; write its rows as CSV or TSV");
  EXPECT_THAT(message("\xd0\xcf\x11\xe0 and more"), HasSubstr("old Excel workbook"));
  EXPECT_THAT(message(std::string("ARROW1\0 and more", 16)), HasSubstr("an Arrow file"));
  EXPECT_THAT(message("\xff\xff\xff\xff and more"), HasSubstr("a stream of Arrow"));
  EXPECT_THAT(message(std::string("SQLite format 3\0", 16)), HasSubstr("an SQLite database"));
  EXPECT_THAT(message("\x89HDF\r\n\x1a\n"), HasSubstr("an HDF5 file"));
  EXPECT_THAT(message("\x80\x04\x95 and more"), HasSubstr("a pickle"));
  EXPECT_THAT(message("\x80\x05\x95 and more"), HasSubstr("a pickle"));
  EXPECT_THAT(message("%PDF-1.7"), HasSubstr("a PDF document"));
  EXPECT_EQ(message("\xff\xfe and more"), "a: is UTF-16 text, which is not read; save it as UTF-8");
  EXPECT_THAT(message("\xfe\xff and more"), HasSubstr("UTF-16"));
  EXPECT_EQ(unpacked("PAR1 is a gene"), "PAR1 is a gene");
}

TEST(ByteReader, ReadsPackedFilesPutTogether) {
  EXPECT_EQ(unpacked(test::gzip("one ") + test::gzip("") + test::gzip("two")), "one two");
  EXPECT_EQ(unpacked(test::xz("one ") + test::xz("two")), "one two");
}

TEST(ByteReader, RefusesEveryBeginning) {
  const std::string bytes = noise(500);
  for (const std::string& packed : {test::gzip(bytes), test::xz(bytes)}) {
    // Shorter prefixes are not recognised as compressed.
    for (size_t size = 6; size < packed.size(); ++size)
      ASSERT_THAT(message(packed.substr(0, size)), HasSubstr("is cut off")) << size;
  }
}

TEST(ByteReader, ComparesChecksums) {
  const std::string bytes = "all that is packed is checked";
  for (const std::string& packed : {test::gzip(bytes), test::xz(bytes)}) {
    // Skips the header, which gzip checks only in part (time and system are ignored).
    for (size_t i = 10; i < packed.size(); ++i) {
      std::string damaged = packed;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      ASSERT_THAT(message(damaged), StartsWith("a: its ")) << i;
    }
  }
}

TEST(ByteReader, RefusesWhatFollows) {
  EXPECT_EQ(message(test::gzip("text") + "more"),
            "a: its gzip data is followed by other bytes; fetch or pack it again");
  EXPECT_THAT(message(test::xz("text") + "more"), HasSubstr("a: its xz data is cut off"))
      << "as if the next one began there";
}

TEST(ByteReader, BoundsWhatComesOut) {
  const std::string bytes = noise(1000);
  for (const std::string& packed : {bytes, test::gzip(bytes), test::xz(bytes)}) {
    EXPECT_EQ(unpacked(packed, 1000), bytes);
    EXPECT_THAT(message(packed, 999), HasSubstr("a: has over 999 bytes"));
  }
}

TEST(ByteReader, RefusesBombs) {
  // gzip reaches a ratio of 1,030, xz of 7,000; up to 16 MiB any ratio is accepted.
  const std::string small(16 << 20, '\0'), large(20 << 20, '\0');
  EXPECT_EQ(unpacked(test::gzip(small)), small);
  EXPECT_EQ(message(test::gzip(large)),
            "a: unpacks to over 200 times its size; unpack it yourself if it is to be trusted");
  EXPECT_THAT(message(test::xz(large)), HasSubstr("over 200 times"));
  // A ratio of 100 is accepted.
  std::string text = noise(20 << 20);
  for (size_t i = 0; i < text.size(); ++i)
    if (i % 100000 > 1000) text[i] = ' ';
  EXPECT_EQ(unpacked(test::xz(text)), text);
}

}  // namespace compressed_test
}  // namespace attend
