#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "attend/files/compressed.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace tar_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

struct Member {
  std::string name, bytes;
  unsigned type = AE_IFREG;
};

std::string tar_of(const std::vector<Member>& members) {
  std::string bytes(size_t{1} << 20, '\0');
  size_t size = 0;
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  archive_write_open_memory(writer, bytes.data(), bytes.size(), &size);
  archive_entry* entry = archive_entry_new();
  for (const Member& member : members) {
    archive_entry_clear(entry);
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_filetype(entry, member.type);
    if (member.type == AE_IFLNK) archive_entry_set_symlink(entry, "elsewhere");
    archive_entry_set_size(entry, static_cast<la_int64_t>(member.bytes.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, member.bytes.data(), member.bytes.size());
  }
  archive_entry_free(entry);
  archive_write_free(writer);
  bytes.resize(size);
  return bytes;
}

using Members = std::vector<std::pair<std::string, std::string>>;

Members members_of(std::string_view bytes, int64_t maximum = 1 << 20) {
  Members members;
  visit_tar(
      ByteReader(bytes, "a.tar"),
      [&](const std::string& name, std::string text) { members.emplace_back(name, text); },
      maximum);
  return members;
}

TEST(Tar, GivesTheFilesInTheirOrder) {
  const std::string large(100000, 'x');
  const std::string longest(200, 'n');
  const std::string tar = tar_of({{"b/", "", AE_IFDIR},
                                  {"b/two.wav", "22"},
                                  {"link", "", AE_IFLNK},
                                  {"a.wav", large},
                                  {longest, ""}});
  const auto expected =
      ElementsAre(Pair("b/two.wav", "22"), Pair("a.wav", large), Pair(longest, ""));
  EXPECT_THAT(members_of(tar), expected);
  EXPECT_THAT(members_of(test::xz(tar)), expected);
  EXPECT_THAT(members_of(test::gzip(tar)), expected);
}

TEST(Tar, RefusesWhatIsNone) {
  const auto message = [](const std::string& bytes) {
    return error_of([&] { members_of(bytes); });
  };
  for (const std::string text : {"", "no archive", "a\tb\n"})
    EXPECT_THAT(message(text), HasSubstr("a.tar: cannot be read as tar, after 0 entries"));
  const std::string tar = tar_of({{"a", std::string(600, 'a')}, {"b", "b"}});
  EXPECT_THAT(message(tar.substr(0, 700)), HasSubstr("a.tar: cannot be read as tar"));
  EXPECT_THAT(message(test::gzip(tar).substr(0, 50)), HasSubstr("a.tar: its gzip data is cut"));
  std::string damaged = tar;
  damaged[2] = 'c';  // in the name, which the header's checksum covers
  EXPECT_THAT(message(damaged), HasSubstr("a.tar: cannot be read as tar"));
}

// A file in GNU's sparse format: `size` zeros without data.
std::string hole_of(const std::string& name, int64_t size) {
  std::string header(512, '\0');
  const auto put = [&](size_t position, const std::string& text) {
    header.replace(position, text.size(), text);
  };
  const auto octal = [](int64_t number) { return fmt::format("{:011o}", number); };
  put(0, name);
  put(100, "0000644");
  put(124, octal(0));
  put(136, octal(0));
  put(156, "S");
  put(257, "ustar  ");
  put(386, octal(size));  // one empty region at the end
  put(398, octal(0));
  put(483, octal(size));
  put(148, "        ");
  int64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

TEST(Tar, FillsHolesWithZerosWithinBounds) {
  const std::string end(1024, '\0');
  EXPECT_THAT(members_of(hole_of("a", 100'000) + end),
              ElementsAre(Pair("a", std::string(100'000, '\0'))));
  const int64_t gigabyte = int64_t{1} << 30;
  EXPECT_THAT(error_of([&] { members_of(hole_of("a", gigabyte) + end, gigabyte); }),
              HasSubstr("a.tar: 'a': the files come to over 200 times the archive's size"));
  std::string many;
  for (int i = 0; i < 20; ++i) many += hole_of(fmt::format("f{}", i), 1 << 20);
  EXPECT_THAT(error_of([&] { members_of(many + end); }), HasSubstr("over 200 times"));
}

TEST(Tar, BoundsAFile) {
  const std::string tar = tar_of({{"a", std::string(600, 'a')}});
  EXPECT_EQ(members_of(tar, 600).size(), 1u);
  EXPECT_EQ(error_of([&] { members_of(tar, 599); }), "a.tar: 'a' has over 599 bytes");
}

}  // namespace tar_test
}  // namespace attend
