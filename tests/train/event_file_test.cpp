#include "attend/train/event_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <bit>
#include <cstring>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "tests/support/files.h"

namespace attend {
namespace event_file_test {

namespace fs = std::filesystem;

// CRC-32C bit by bit (RFC 3720, appendix B.4, with the examples below).
uint32_t slow_crc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

template <class Number>
Number number_at(const std::string& bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

// Records of a file, after a check of their checksums.
std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> found;
  const auto masked = [](uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; };
  for (size_t offset = 0; offset < bytes.size();) {
    const auto length = number_at<uint64_t>(bytes, offset);
    EXPECT_EQ(number_at<uint32_t>(bytes, offset + 8), masked(slow_crc(bytes.substr(offset, 8))));
    found.push_back(bytes.substr(offset + 12, length));
    EXPECT_EQ(number_at<uint32_t>(bytes, offset + 12 + length), masked(slow_crc(found.back())));
    offset += 16 + length;
  }
  return found;
}

class EventFileTest : public testing::Test {
 protected:
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
};

TEST_F(EventFileTest, TheSlowChecksumIsThatOfTheStandard) {
  EXPECT_EQ(slow_crc(std::string(32, '\0')), 0x8a9136aa);
  EXPECT_EQ(slow_crc(std::string(32, '\xff')), 0x62a8ab43);
}

// Expected bytes by hand from event.proto and summary.proto; the first 9 bytes, the wall time,
// vary.
TEST_F(EventFileTest, HoldsEventsOfScalars) {
  EventFile file(folder, 300);
  file.write(301, {{"loss", 0.5}, {"rate", -2.0}});
  std::string path;
  for (const auto& entry : fs::directory_iterator(folder)) path = entry.path();
  EXPECT_NE(path.find("/events.out.tfevents."), std::string::npos);
  const auto found = records(read_file(path));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].substr(9), std::string("\x10\x00\x1a\x0d", 4) + "brain.Event:2");
  EXPECT_EQ(found[1].substr(9), "\x10\xad\x02\x3a\x02\x08\x01");  // step 301, START
  EXPECT_EQ(found[2].substr(9), std::string("\x10\xad\x02\x2a\x1a"
                                            "\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f"
                                            "\x0a\x0b\x0a\x04rate\x15\x00\x00\x00\xc0",
                                            31));
  for (const std::string& record : found) {
    EXPECT_EQ(record[0], '\x09');
    EXPECT_GT(number_at<double>(record, 1), 0);
  }
}

TEST_F(EventFileTest, EachBeginsAFileOfItsOwn) {
  const auto files = [&] {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  };
  EventFile first(folder, 0), second(folder, 7), absent(folder / "absent", 0);
  EXPECT_EQ(files(), 0);
  for (EventFile* file : {&first, &second, &second}) file->write(8, {{"loss", 1}});
  EXPECT_EQ(files(), 2);
  EXPECT_THROW(absent.write(1, {{"loss", 1}}), Error);
}

// Readers stop at an incomplete record.
TEST_F(EventFileTest, LeavesNoHalfRecord) {
  EventFile file(folder, 0);
  file.write(1, {{"loss", 1}});
  const std::string path = fs::directory_iterator(folder)->path();
  const std::string before = read_file(path);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit limit = old;
  limit.rlim_cur = before.size() + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(file.write(2, {{"loss", 1}}), Error);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path), before);
}

}  // namespace event_file_test
}  // namespace attend
