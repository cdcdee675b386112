#include "attend/kernels/weight_memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace attend::kernels {
namespace {

constexpr int64_t line = 64;
constexpr int64_t huge_page = int64_t{1} << 21;
// Pages that no block uses take no memory.
constexpr int64_t chunk_bytes = 32 * huge_page;
// Smaller blocks are allocated one by one, so that sanitizers see accesses beyond their end.
constexpr int64_t smallest_shared = int64_t{1} << 16;

constexpr int64_t rounded_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Huge pages for several blocks.
class Chunk {
 public:
  explicit Chunk(int64_t bytes)
      : mapped_bytes_(static_cast<size_t>(rounded_up(bytes, huge_page) + huge_page)),
        mapped_(mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0)) {
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<uintptr_t>(mapped_);
    left_ = rounded_up(bytes, huge_page);
    next_ = static_cast<char*>(mapped_) + (huge_page - address % huge_page) % huge_page;
#ifdef MADV_HUGEPAGE
    madvise(next_, static_cast<size_t>(left_), MADV_HUGEPAGE);  // advice; it may have no effect
#endif
  }
  ~Chunk() { munmap(mapped_, mapped_bytes_); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  bool has(int64_t bytes) const { return bytes <= left_; }
  char* take(int64_t bytes) {
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }

 private:
  size_t mapped_bytes_;
  void* mapped_;
  char* next_ = nullptr;
  int64_t left_ = 0;
};

// A block of the chunk that was begun last, or of a new one.
std::shared_ptr<char> shared_block(int64_t bytes) {
  static std::mutex mutex;
  static std::weak_ptr<Chunk> newest;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Chunk> chunk = newest.lock();
  if (chunk == nullptr || !chunk->has(bytes)) {
#ifdef __GLIBC__
    malloc_trim(0);  // a chunk cannot reuse what malloc keeps of a model's file
#endif
    chunk = std::make_shared<Chunk>(std::max(bytes, chunk_bytes));
    newest = chunk;
  }
  return {chunk, chunk->take(bytes)};
}

std::shared_ptr<char> own_block(int64_t bytes) {
  constexpr std::align_val_t aligned{line};
  const auto size = static_cast<size_t>(bytes);
  std::shared_ptr<char> block(static_cast<char*>(operator new(size, aligned)),
                              [](char* p) { operator delete(p, aligned); });
  std::memset(block.get(), 0, size);
  return block;
}

}  // namespace

WeightMemory::WeightMemory(int64_t bytes)
    : data_(bytes < smallest_shared ? own_block(bytes) : shared_block(rounded_up(bytes, line))) {}

}  // namespace attend::kernels
