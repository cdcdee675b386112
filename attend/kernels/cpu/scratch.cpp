#include <hwy/aligned_allocator.h>

#include <mutex>
#include <vector>

#include "attend/kernels/cpu/scratch-inl.h"

namespace attend::kernels {
namespace {

// For smaller blocks, the system's allocator reuses pages itself.
constexpr size_t kLeast = size_t{1} << 14;
// Limits of the unused memory in the pool: bytes and blocks.
constexpr size_t kMost = size_t{1} << 26;
constexpr size_t kMostBlocks = 256;

void release(const Scratch& scratch) { hwy::FreeAlignedBytes(scratch.data, nullptr, nullptr); }

// Blocks that were given back. The system clears each new page, which takes longer than computing
// short sequences.
class Pool {
 public:
  Pool() { kept_.reserve(kMostBlocks + 1); }

  Scratch take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    size_t best = kept_.size();
    for (size_t n = 0; n < kept_.size(); ++n) {
      const size_t size = kept_[n].bytes;
      if (size < bytes || size / 2 > bytes) continue;
      if (best == kept_.size() || size < kept_[best].bytes) best = n;
    }
    return best == kept_.size() ? Scratch{} : remove(best);
  }

  void keep(const Scratch& scratch) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(scratch);
    bytes_ += scratch.bytes;
    while (bytes_ > kMost || kept_.size() > kMostBlocks) release(remove(0));
  }

 private:
  Scratch remove(size_t n) {
    const Scratch scratch = kept_[n];
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(n));
    bytes_ -= scratch.bytes;
    return scratch;
  }

  std::mutex mutex_;
  std::vector<Scratch> kept_;  // oldest first; capacity is reserved, so keep() does not throw
  size_t bytes_ = 0;
};

// Never destroyed: threads may outlive static objects.
Pool& pool() {
  static Pool* const pool = new Pool;
  return *pool;
}

}  // namespace

Scratch take_scratch(size_t bytes) {
  if (bytes >= kLeast) {
    const Scratch kept = pool().take(bytes);
    if (kept.data != nullptr) return kept;
  }
  void* const data = hwy::AllocateAlignedBytes(bytes, nullptr, nullptr);
  return {data, data == nullptr ? 0 : bytes};
}

void give_back(Scratch scratch) {
  if (scratch.data == nullptr) return;
  scratch.bytes >= kLeast ? pool().keep(scratch) : release(scratch);
}

}  // namespace attend::kernels
