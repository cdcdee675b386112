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

// The additive family in the form sum_a w_a / (A_ia + E_ja) with A = e^(2(q - c)), E = e^(-2(k +
// c)) and w_a a multiple of v_a E_ja: see additive-inl.h. Prepared once a query head, [batch *
// heads].
template <class T>
struct AdditivePlan {
  const Problem<T>* problem = nullptr;
  bool natural = false;   // dimensions in their own order
  int64_t padded = 0;     // depth in whole vectors
  T* centre = nullptr;    // [head][padded] c
  T* constant = nullptr;  // [head] what every score of a row has, in units of log2
  T* factor = nullptr;    // [head][keys][padded] E, in the order of `order`; k of a hard dimension
  T* weight = nullptr;    // [head][keys][padded] w; of a hard dimension, without E
  int64_t* order = nullptr;  // [head][padded] the dimension at each place
  int64_t* hard = nullptr;   // [head][padded] whether a dimension's range is too wide for the form
  int64_t* ends = nullptr;   // [head][3] where quadruples, pairs and single dimensions end

  int64_t heads() const { return problem->shape.batch * problem->shape.heads; }
  int64_t key_blocks() const { return (problem->shape.keys + kTileKeys - 1) / kTileKeys; }
};

// Too few queries to prepare the keys for: forward takes the additive scores directly.
inline bool few_queries(const Shape& shape) { return shape.queries <= 4; }

template <class T>
struct ForwardPlan {
  const Problem<T>* problem;
  AdditivePlan<T> additive;
  Result<T> result;
  int64_t blocks;  // of queries, a head
  int64_t splits;  // of the keys, merged afterwards
  int64_t split_keys;
  T* partial_context;  // [splits - 1, batch, heads, queries, value_depth]
  T* partial_lse;      // [splits - 1, batch, heads, queries]

  int64_t tasks() const { return problem->shape.batch * problem->shape.heads * blocks * splits; }

  // Where a split writes: the first to the result.
  Result<T> split_result(int64_t split) const {
    if (split == 0) return result;
    const Shape& s = problem->shape;
    const int64_t rows = s.batch * s.heads * s.queries;
    return {contiguous(partial_context + (split - 1) * rows * s.value_depth, s.heads, s.queries,
                       s.value_depth),
            partial_lse + (split - 1) * rows};
  }
};

// Rows first_row + r, r < rows, of every head.
template <class T>
struct WeightsPlan {
  const Problem<T>* problem;
  AdditivePlan<T> additive;
  const T* lse;
  int64_t first_row, rows;
  View<T> weights;

  int64_t blocks() const { return (rows + kBackwardRows - 1) / kBackwardRows; }
  int64_t tasks() const { return problem->shape.batch * problem->shape.heads * blocks(); }
};

// Backward works on chunks of keys. Every chunk adds to dQ; chunk 0 writes it where the caller
// wants it and the others to `partial`, which are then added in the order of the chunks.
template <class T>
struct BackwardPlan {
  const Problem<T>* problem;
  AdditivePlan<T> additive;  // for the scores
  AdditivePlan<T> natural;   // for the gradients
  Upstream<T> upstream;
  Gradients<T> gradients;
  int64_t chunks;
  int64_t chunk_keys;
  T* partial;         // [chunks - 1, batch, heads, queries, depth]
  T* partial_vector;  // [batch, chunks, heads, depth], for the additive family
  T* partial_slopes;  // [batch, chunks, heads], where slopes have a gradient

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
using WeightsTask = void (*)(const WeightsPlan<T>& plan, int64_t task, Arena<T>& arena);
template <class T>
using BackwardTask = void (*)(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena);

template <class T>
using AdditiveTask = void (*)(const AdditivePlan<T>& plan, int64_t task, Arena<T>& arena);

// Tasks of preparation: one a head, then, when all are done, one a head and block of keys.
template <class T>
AdditiveTask<T> additive_head_task();
template <class T>
AdditiveTask<T> additive_key_task();
template <class T>
ForwardTask<T> forward_task();
template <class T>
WeightsTask<T> weights_task();
template <class T>
BackwardTask<T> backward_task();

}  // namespace attend::kernels
