#include "attend/train/event_file.h"

#include <unistd.h>

#include <bit>
#include <boost/crc.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>

#include "attend/base/error.h"

namespace attend {
namespace {

uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> crc;  // Castagnoli's
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

// The record format masks checksums, because a checksum over bytes that contain checksums is weak.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8U; }

template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(number); ++i)
    bytes += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i) & 0xff);
  return bytes;
}

std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

// A field of the protocol-buffer wire format. Kinds: 0 varint, 1 eight bytes, 2 length and bytes, 5
// four bytes.
std::string field(uint64_t number, uint64_t kind, std::string_view content) {
  std::string bytes = varint(number << 3 | kind);
  if (kind == 2) bytes += varint(content.size());
  return bytes.append(content);
}

std::string event(int64_t step, const std::string& content) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return field(1, 1, little_endian(std::bit_cast<uint64_t>(now))) +
         field(2, 0, varint(static_cast<uint64_t>(step))) + content;
}

}  // namespace

void EventFile::begin() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  // TensorBoard reads the files of a folder in name order.
  int64_t number = 0;
  do {
    path_ = fmt::format("{}/events.out.tfevents.{:010}.attend.{}.{}", folder_, seconds, ::getpid(),
                        number++);
  } while (std::filesystem::exists(path_));
  append(event(0, field(3, 2, "brain.Event:2")));
  // SessionLog with status START: the program starts here, so later events in older files are
  // stale.
  append(event(step_ + 1, field(7, 2, field(1, 0, varint(1)))));
}

void EventFile::write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  if (path_.empty()) begin();
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    const auto number = std::bit_cast<uint32_t>(static_cast<float>(value));
    summary += field(1, 2, field(1, 2, tag) + field(2, 5, little_endian(number)));
  }
  append(event(step, field(5, 2, summary)));
}

void EventFile::append(std::string_view event) {
  const std::string length = little_endian(static_cast<uint64_t>(event.size()));
  std::error_code absent, ignored;
  const auto before = std::filesystem::file_size(path_, absent);
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << length << little_endian(masked_crc(length)) << event << little_endian(masked_crc(event));
  if (file.flush()) return;
  // Readers would stop at a truncated record.
  file.close();
  std::filesystem::resize_file(path_, absent ? 0 : before, ignored);
  fail("{}: cannot be written; free space there, or choose another train.tensorboard", path_);
}

}  // namespace attend
