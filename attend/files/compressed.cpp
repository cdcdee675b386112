#include "attend/files/compressed.h"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {
namespace {

constexpr std::string_view gzip_magic = "\x1f\x8b";
constexpr std::string_view xz_magic("\xfd\x37zXZ\0", 6);

// First bytes of files that hold no plain text.
struct OtherForm {
  std::string_view magic, name;
  std::string_view remedy = "unpack it, or pack it by gzip or xz";
  size_t between = 0;             // variable bytes after `magic`
  std::string_view further = {};  // bytes after these
};
constexpr std::string_view as_table = "write its rows as CSV or TSV";
constexpr std::string_view as_utf8 = "save it as UTF-8";
constexpr OtherForm other_forms[] = {
    {.magic = "BZh", .name = "packed by bzip2", .between = 1, .further = "1AY&SY"},
    {"\x28\xb5\x2f\xfd", "packed by zstd"},
    {"\x04\x22\x4d\x18", "packed by lz4"},
    {"\x1f\x9d", "packed by compress"},
    {"7z\xbc\xaf\x27\x1c", "packed by 7-Zip"},
    {"PK\x03\x04", "a ZIP archive or an Excel workbook", "unpack it, or save the sheet as CSV"},
    {"\xd0\xcf\x11\xe0", "an old Excel workbook or another Office document",
     "save the sheet as CSV"},
    {"PAR1\x15", "a Parquet file", as_table},
    {{"ARROW1\0", 7}, "an Arrow file", as_table},
    {"\xff\xff\xff\xff", "a stream of Arrow", as_table},
    {{"SQLite format 3\0", 16}, "an SQLite database", as_table},
    {"\x89HDF\r\n", "an HDF5 file", as_table},
    {"\x80\x04\x95", "a pickle of Python", as_table},
    {"\x80\x05\x95", "a pickle of Python", as_table},
    {"%PDF-", "a PDF document", "save its text as UTF-8"},
    {"\xff\xfe", "UTF-16 text", as_utf8},
    {"\xfe\xff", "UTF-16 text", as_utf8}};

// A higher ratio indicates a decompression bomb.
constexpr int64_t largest_ratio = 200;
constexpr int64_t free_of_ratio = int64_t{16} << 20;

// `xz -9` needs 65 MiB for unpacking.
constexpr uint64_t xz_memory = uint64_t{256} << 20;

// 15 bits: the largest window; + 16: a gzip header and its checksum.
constexpr int gzip_window = 15 + 16;

}  // namespace

struct ByteReader::State {
  enum class Packing { none, gzip, xz };

  explicit State(std::string name, int64_t maximum)
      : name(std::move(name)), maximum_bytes(maximum) {}
  ~State() {
    if (packing == Packing::gzip) inflateEnd(&gzip);
    if (packing == Packing::xz) lzma_end(&xz);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void begin();
  bool refill();
  size_t unpack(char* bytes, size_t size);
  size_t unpack_gzip(char* bytes, size_t size);
  size_t unpack_xz(char* bytes, size_t size);
  void next_gzip_member();
  void check_expansion() const;
  [[noreturn]] void fail_packed(std::string_view problem) const;

  std::string name;
  int64_t maximum_bytes;
  std::optional<InputFile> file;
  std::string_view memory;
  Packing packing = Packing::none;
  z_stream gzip = {};
  lzma_stream xz = LZMA_STREAM_INIT;
  bool between_members = false;  // for gzip: the file may end here
  bool finished = false;
  std::array<char, 1 << 16> buffer;
  std::string_view packed;  // unused part of the buffer
  int64_t bytes_in = 0;     // including `packed`
  int64_t bytes_out = 0;
};

// Returns false at the end of the file.
bool ByteReader::State::refill() {
  if (!packed.empty()) return true;
  size_t count;
  if (file) {
    count = file->read(buffer.data(), buffer.size());
  } else {
    count = memory.copy(buffer.data(), buffer.size());
    memory.remove_prefix(count);
  }
  packed = {buffer.data(), count};
  bytes_in += static_cast<int64_t>(count);
  return count > 0;
}

void ByteReader::State::begin() {
  refill();
  if (packed.starts_with(gzip_magic)) {
    if (inflateInit2(&gzip, gzip_window) != Z_OK) throw std::bad_alloc();
    packing = Packing::gzip;
  } else if (packed.starts_with(xz_magic)) {
    if (lzma_stream_decoder(&xz, xz_memory, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
    packing = Packing::xz;
  }
  for (const OtherForm& other : other_forms)
    if (packed.starts_with(other.magic) &&
        packed.substr(std::min(other.magic.size() + other.between, packed.size()))
            .starts_with(other.further))
      fail("{}: is {}, which is not read; {}", name, other.name, other.remedy);
}

void ByteReader::State::fail_packed(std::string_view problem) const {
  fail("{}: {} {}; fetch or pack it again", name,
       packing == Packing::gzip ? "its gzip data" : "its xz data", problem);
}

void ByteReader::State::next_gzip_member() {
  between_members = false;
  if (packed[0] != gzip_magic[0]) fail_packed("is followed by other bytes");
  if (inflateReset(&gzip) != Z_OK) throw std::bad_alloc();
}

size_t ByteReader::State::unpack_gzip(char* bytes, size_t size) {
  if (between_members) next_gzip_member();
  gzip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  gzip.avail_in = static_cast<uInt>(packed.size());
  gzip.next_out = reinterpret_cast<Bytef*>(bytes);
  gzip.avail_out = static_cast<uInt>(size);
  const int code = inflate(&gzip, Z_NO_FLUSH);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) fail_packed("is damaged");
  packed.remove_prefix(packed.size() - gzip.avail_in);
  between_members = code == Z_STREAM_END;
  return size - gzip.avail_out;
}

size_t ByteReader::State::unpack_xz(char* bytes, size_t size) {
  xz.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  xz.avail_in = packed.size();
  xz.next_out = reinterpret_cast<uint8_t*>(bytes);
  xz.avail_out = size;
  const lzma_ret code = lzma_code(&xz, packed.empty() ? LZMA_FINISH : LZMA_RUN);
  packed.remove_prefix(packed.size() - xz.avail_in);
  finished = code == LZMA_STREAM_END;
  if (code == LZMA_MEM_ERROR) throw std::bad_alloc();
  if (code == LZMA_MEMLIMIT_ERROR) fail_packed("takes over 256 MiB to unpack");
  if (code == LZMA_BUF_ERROR) fail_packed("is cut off");
  if (code != LZMA_OK && code != LZMA_STREAM_END) fail_packed("is damaged");
  return size - xz.avail_out;
}

size_t ByteReader::State::unpack(char* bytes, size_t size) {
  size = std::min<size_t>(size, 1 << 30);  // zlib counts in 32 bits
  while (!finished) {
    const bool more = refill();
    if (packing == Packing::none) {
      const size_t count = packed.copy(bytes, size);
      packed.remove_prefix(count);
      return count;
    }
    if (packing == Packing::gzip && !more) {
      if (!between_members) fail_packed("is cut off");
      finished = true;
      break;
    }
    const size_t count =
        packing == Packing::gzip ? unpack_gzip(bytes, size) : unpack_xz(bytes, size);
    if (count > 0) return count;
  }
  return 0;
}

void ByteReader::State::check_expansion() const {
  if (bytes_out > maximum_bytes)
    fail("{}: has over {} bytes{}; no more are read", name, maximum_bytes,
         packing == Packing::none ? "" : " unpacked");
  if (packing == Packing::none || bytes_out <= free_of_ratio) return;
  const int64_t used = bytes_in - static_cast<int64_t>(packed.size());
  if (bytes_out / largest_ratio > used)
    fail("{}: unpacks to over {} times its size; unpack it yourself if it is to be trusted", name,
         largest_ratio);
}

ByteReader::ByteReader(const std::string& path, int64_t maximum_bytes)
    : state_(std::make_unique<State>(path, maximum_bytes)) {
  state_->file.emplace(path);
  state_->begin();
  if (state_->packing == State::Packing::none && state_->file->size() > maximum_bytes)
    fail("{}: has {} bytes; at most {} are read", path, state_->file->size(), maximum_bytes);
}

ByteReader::ByteReader(std::string_view bytes, std::string name, int64_t maximum_bytes)
    : state_(std::make_unique<State>(std::move(name), maximum_bytes)) {
  state_->memory = bytes;
  state_->begin();
}

ByteReader::~ByteReader() = default;
ByteReader::ByteReader(ByteReader&&) noexcept = default;
ByteReader& ByteReader::operator=(ByteReader&&) noexcept = default;

const std::string& ByteReader::name() const { return state_->name; }

size_t ByteReader::read(char* bytes, size_t size) {
  const size_t count = state_->unpack(bytes, size);
  state_->bytes_out += static_cast<int64_t>(count);
  state_->check_expansion();
  return count;
}

std::string ByteReader::read_all() {
  constexpr size_t least = size_t{1} << 16;
  std::string bytes;
  size_t size = 0;
  while (true) {
    bytes.resize(std::max(least, 2 * size));
    while (size < bytes.size()) {
      const size_t count = read(bytes.data() + size, bytes.size() - size);
      if (count == 0) {
        bytes.resize(size);
        bytes.shrink_to_fit();
        return bytes;
      }
      size += count;
    }
  }
}

std::string read_packed(const std::string& path, int64_t maximum_bytes) {
  return ByteReader(path, maximum_bytes).read_all();
}

}  // namespace attend
