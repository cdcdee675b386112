#pragma once

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attend/kernels/attention.h"

// What the drivers hand to the code of a CPU target. A task is the unit of work of a thread; which
// thread runs it changes nothing.

namespace attend::kernels {

// Scratch of one thread: the n-th take of a task gets the same buffer as the n-th of the task
// before, so that a warm thread allocates nothing.
template <class T>
class Arena {
 public:
  void restart() { next_ = 0; }

  // `count` numbers, aligned for vectors, contents undefined, valid until the task ends.
  T* take(int64_t count) {
    if (next_ == buffers_.size()) buffers_.emplace_back();
    Buffer& buffer = buffers_[next_++];
    count = std::max<int64_t>(1, count);  // the allocator refuses 0
    if (buffer.count < count) {
      buffer.data = hwy::AllocateAligned<T>(static_cast<size_t>(count));
      buffer.count = count;
    }
    return buffer.data.get();
  }

 private:
  struct Buffer {
    hwy::AlignedFreeUniquePtr<T[]> data;
    int64_t count = 0;
  };
  std::vector<Buffer> buffers_;
  size_t next_ = 0;
};

// Query rows of a forward task: enough work for each tile of keys fetched from the outer caches.
inline constexpr int64_t kForwardRows = 128;
// Query rows of a backward tile, the inner axis of two of its products.
inline constexpr int64_t kBackwardRows = 64;
// Keys of a tile: scores of a panel, panel and accumulators stay in the first-level cache.
inline constexpr int64_t kTileKeys = 64;

template <class T>
struct ForwardPlan {
  const Problem<T>* problem;
  Result<T> result;
  int64_t blocks;  // of queries, a head

  int64_t tasks() const { return problem->shape.batch * problem->shape.heads * blocks; }
};

// Backward works on chunks of keys. Every chunk adds to dQ; chunk 0 writes it where the caller
// wants it and the others to `partial`, which are then added in the order of the chunks.
template <class T>
struct BackwardPlan {
  const Problem<T>* problem;
  Upstream<T> upstream;
  Gradients<T> gradients;
  int64_t chunks;
  int64_t chunk_keys;
  T* partial;  // [chunks - 1, batch, heads, queries, depth]

  int64_t tasks() const { return problem->shape.batch * problem->shape.key_heads * chunks; }

  View<T> query_gradient(int64_t chunk) const {
    const Shape& s = problem->shape;
    if (chunk == 0) return gradients.query;
    return contiguous(partial + (chunk - 1) * s.batch * s.heads * s.queries * s.depth, s.heads,
                      s.queries, s.depth);
  }
};

// The code of this CPU's target, chosen at run time.
template <class T>
using ForwardTask = void (*)(const ForwardPlan<T>& plan, int64_t task, Arena<T>& arena);
template <class T>
using BackwardTask = void (*)(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena);

template <class T>
ForwardTask<T> forward_task();
template <class T>
BackwardTask<T> backward_task();

}  // namespace attend::kernels
