#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/kernels/attention.h"
#include "attend/kernels/bfloat16_products.h"
#include "attend/kernels/cpu/scratch-inl.h"

// Plans that the drivers pass to the code of a CPU target. A task is the unit of work of a thread;
// results do not depend on the thread.

namespace attend::kernels {

// Scratch memory of one thread. The n-th take() of each task returns the same buffer; a warm thread
// therefore allocates nothing.
template <class T>
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (const Scratch& buffer : buffers_) give_back(buffer);
  }

  void restart() { next_ = 0; }

  // Returns `count` numbers, aligned for vectors, with undefined contents, valid until the task
  // ends. Throws attend::Error if memory runs out.
  T* take(int64_t count) {
    if (next_ == buffers_.size()) buffers_.emplace_back();
    Scratch& buffer = buffers_[next_++];
    const size_t wanted = static_cast<size_t>(std::max<int64_t>(1, count));
    if (buffer.bytes / sizeof(T) < wanted) {
      give_back(std::exchange(buffer, {}));  // frees before allocating
      constexpr size_t kMost = std::numeric_limits<int64_t>::max() / sizeof(T);
      if (wanted <= kMost) buffer = take_scratch(wanted * sizeof(T));
      if (buffer.data == nullptr)
        fail(
            "the kernels found no memory for {} numbers of {} bytes; they need smaller batches or "
            "shorter sequences",
            count, sizeof(T));
    }
    return static_cast<T*>(buffer.data);
  }

 private:
  std::vector<Scratch> buffers_;
  size_t next_ = 0;
};

// Query rows of a forward task: enough work per tile of keys fetched from the outer caches.
inline constexpr int64_t kForwardRows = 128;
// Query rows of a backward tile, the inner axis of two of its products.
inline constexpr int64_t kBackwardRows = 64;
// Keys of a tile: scores, panel and accumulators stay in the first-level cache.
inline constexpr int64_t kTileKeys = 64;

inline constexpr double kLog2E = 1.4426950408889634;

// Factor of scores before normalisation: exponentials are powers of 4. Powers of 2 would need a
// factor above 1, which makes the largest numbers infinite.
inline constexpr double kLog4E = kLog2E / 2;
inline constexpr double kLn4 = 1.3862943611198906;

// Whether weights are divided by a sum that grows tile by tile, and lse is its logarithm.
inline bool sums_exponentials(Normaliser normaliser) {
  return normaliser == Normaliser::softmax || normaliser == Normaliser::softpick;
}

// Whether a weight depends on the scores of the keys after its own, but on no sum over the row.
inline bool is_ordered(Normaliser normaliser) { return normaliser == Normaliser::stick_breaking; }

inline double score_unit(Normaliser normaliser) {
  return sums_exponentials(normaliser) || is_ordered(normaliser) ||
                 normaliser == Normaliser::sigmoid
             ? kLog4E
             : 1.0;
}

// Sparsemax, entmax and top_k need whole rows for their thresholds.
inline bool is_sparse(Normaliser normaliser) {
  return normaliser == Normaliser::sparsemax || normaliser == Normaliser::entmax15 ||
         normaliser == Normaliser::entmax || normaliser == Normaliser::top_k;
}

// Whether a weight depends on a number of its row.
inline bool needs_shifts(Normaliser normaliser) {
  return sums_exponentials(normaliser) || is_sparse(normaliser);
}

// Added to the sum of softpick (Zuhri 2025).
inline constexpr double kSoftpickFloor = 1e-8;

// The normaliser of the rows of one head, with its numbers.
template <class T>
struct RowNormaliser {
  RowNormaliser(const Problem<T>& problem, int64_t head)
      : kind(problem.normaliser),
        alpha(problem.alphas == nullptr ? T(2) : problem.alphas[head]),
        top(problem.top) {}

  // Threshold of a row from its shift: weights of entmax have a shift 1 / (alpha - 1) above it.
  T threshold(T offset) const {
    return kind == Normaliser::entmax ? offset - 1 / (alpha - 1) : offset;
  }

  Normaliser kind;
  T alpha;
  int64_t top;
};

// The two activations of the form 1 - magnitude / (1 + e^(2 rate x)), computed by exponentials.
inline bool is_exponential(Activation a) {
  return a == Activation::tanh || a == Activation::sigmoid;
}
inline double activation_rate(Activation a) { return a == Activation::sigmoid ? 0.5 : 1.0; }
inline double activation_magnitude(Activation a) { return a == Activation::sigmoid ? 1.0 : 2.0; }

// Whether negative numbers have a slope. A slope of 0 is excluded: times infinity it would be NaN.
template <class T>
bool is_leaky(const Score<T>& score) {
  return score.activation == Activation::leaky_relu && score.negative_slope != 0;
}

template <class T>
bool is_prepared(const Score<T>& score) {
  return score.family == Family::additive && is_exponential(score.activation);
}

// The additive family as sum_a w_a / (A_ia + E_ja) with A = e^(2(q - c)), E = e^(-2(k + c)) and w_a
// a multiple of v_a E_ja; see additive-inl.h. Gradients use G = 1 / E, with the dimensions in their
// natural order; see additive-gradient-inl.h. Prepared once per query head, [batch * heads].
template <class T>
struct AdditivePlan {
  const Problem<T>* problem = nullptr;
  bool natural = false;   // dimensions in their natural order
  int64_t padded = 0;     // depth rounded up to whole vectors
  T* centre = nullptr;    // [head][padded] c
  T* constant = nullptr;  // [head] common term of all scores of a row, in units of log4
  T* base = nullptr;      // [head][padded] 1 if A and G are near 1, otherwise 0; natural only
  // [head][keys][padded] E, in the order of `order`; natural: G; plain dimensions: k.
  T* factor = nullptr;
  // [head][keys][padded] w; plain dimensions: w without E; natural: base (G - 1).
  T* weight = nullptr;
  int64_t* order = nullptr;  // [head][padded] dimension at each index
  int64_t* plain = nullptr;  // [head][padded] whether a dimension keeps q and k unchanged: its
                             // range is too wide for this form or, unless natural, around 0
  // [head][4] ends of the quadruples, pairs, single dimensions, and dimensions around 0; natural:
  // whether the keys of a head may share reciprocals.
  int64_t* ends = nullptr;

  int64_t heads() const { return problem->shape.batch * problem->shape.heads; }
  int64_t key_blocks() const { return (problem->shape.keys + kTileKeys - 1) / kTileKeys; }
};

// Limit of few queries: panels would be mostly empty, and vectors run along the depth instead.
inline constexpr int64_t kFewQueries = 4;
inline bool few_queries(const Shape& shape) { return shape.queries <= kFewQueries; }

// 16-bit keys and values, which the form for few queries reads without conversion: it is limited by
// memory. Strides as in the problem, in elements; null: the problem's own arrays.
struct HalfKeys {
  const uint16_t* key = nullptr;
  const uint16_t* value = nullptr;
  bool bfloat16 = false;      // BFloat16, otherwise Float16
  bool reads_values = false;  // values are read after the keys of a tile, and prefetched meanwhile
};
inline constexpr HalfKeys kPlainKeys;

// The dot family on bf16 arrays, if the processor multiplies bf16. Keys and values are packed for
// its products, once per key head: blocks of kTileKeys keys, depths padded with 0 to
// kBFloat16Depth. Null: not packed.
inline constexpr int64_t kBFloat16Depth = 32;
inline constexpr int64_t kBFloat16Rows = 16;  // rows of a product are a multiple of it

struct BFloat16Plan {
  const BFloat16Kernels* kernels = nullptr;  // null: products in float
  Shape shape;
  View<const uint16_t> query, key, value, grad_context;  // as stored
  uint16_t* key_rows = nullptr;                          // [head][block][kTileKeys][padded depth]
  uint16_t* key_columns = nullptr;                       // [head][block][padded depth][kTileKeys]
  uint16_t* value_rows = nullptr;     // [head][block][kTileKeys][padded value depth]
  uint16_t* value_columns = nullptr;  // [head][block][padded value depth][kTileKeys]

  static int64_t padded(int64_t depth) {
    return (depth + kBFloat16Depth - 1) / kBFloat16Depth * kBFloat16Depth;
  }
  int64_t heads() const { return shape.batch * shape.key_heads; }
  int64_t blocks() const { return (shape.keys + kTileKeys - 1) / kTileKeys; }
  int64_t size(int64_t depth) const { return heads() * blocks() * kTileKeys * padded(depth); }
  int64_t block(int64_t batch, int64_t key_head, int64_t key) const {
    return (batch * shape.key_heads + key_head) * blocks() + key / kTileKeys;
  }
};

// Start of the next tile after `key`: products of bf16 use keys of one block only.
inline int64_t next_tile(const BFloat16Plan& plan, int64_t key) {
  return plan.kernels == nullptr ? key + kTileKeys : key / kTileKeys * kTileKeys + kTileKeys;
}

// The next block of `size` queries after `first`, in the same head or the next one; unset at the
// end.
inline std::optional<Row> block_after(const Shape& s, const Row& first, int64_t size) {
  if (first.query + size < s.queries) return Row{first.batch, first.head, first.query + size};
  if (first.head + 1 < s.heads) return Row{first.batch, first.head + 1, 0};
  if (first.batch + 1 < s.batch) return Row{first.batch + 1, 0, 0};
  return std::nullopt;
}

// Whether two query rows read different key heads.
inline bool is_other_key_head(const Shape& s, const Row& a, const Row& b) {
  const int64_t group = s.heads / s.key_heads;
  return a.batch != b.batch || a.head / group != b.head / group;
}

// Backward and the weights read the keys of few queries as forward does; scores are then
// bit-identical.
inline const HalfKeys* few_keys(const Shape& shape) {
  return few_queries(shape) ? &kPlainKeys : nullptr;
}

// Shift of a row's scores, in the unit of the normaliser. The reference is near the largest score;
// the offset is the distance of the normaliser from it. Their sum is an lse, which for large scores
// would round the offset away. A row without keys has reference 0 and offset +inf: all scores are
// below, and weights are 0.
template <class T>
struct RowShifts {
  T* reference = nullptr;
  T* offset = nullptr;
};

template <class T>
struct ForwardPlan {
  const Problem<T>* problem;
  AdditivePlan<T> additive;
  Result<T> result;  // context: null if only `rounded` is requested
  int64_t blocks;    // query blocks per head
  int64_t splits;    // splits of the keys, merged afterwards
  int64_t split_keys;
  HalfKeys half;
  BFloat16Plan bfloat16;
  View<BFloat16> rounded;    // also receives the context; null: not requested
  T* partial_context;        // [splits - 1, batch, heads, queries, value_depth]
  RowShifts<T> partial_lse;  // [splits, batch, heads, queries], natural units; null: one split

  int64_t tasks() const { return problem->shape.batch * problem->shape.heads * blocks * splits; }
  int64_t rows() const {
    return problem->shape.batch * problem->shape.heads * problem->shape.queries;
  }

  // Output of a split: the first writes to the result.
  View<T> split_context(int64_t split) const {
    const Shape& s = problem->shape;
    if (split == 0) return result.context;
    return contiguous(partial_context + (split - 1) * rows() * s.value_depth, s.heads, s.queries,
                      s.value_depth);
  }
  RowShifts<T> split_lse(int64_t split) const {
    return {partial_lse.reference + split * rows(), partial_lse.offset + split * rows()};
  }
};

// Requested outputs for the weights of the selected rows; null: not requested. A task for column
// sums is a block of keys, or all keys of a head if their order matters; otherwise a block of rows.
template <class T>
struct SummaryPlan {
  const Problem<T>* problem;
  AdditivePlan<T> additive;
  const T* lse;
  Selection selection;
  RowShifts<T> shifts;  // [batch, heads, queries], null if the normaliser needs none
  View<T> weights;
  BFloat16Plan bfloat16 = {};
  int64_t top = 0;
  T* top_weights = nullptr;
  int64_t* top_keys = nullptr;
  T* entropy = nullptr;
  T* column_sums = nullptr;
  T* edge_weights = nullptr;  // [batch, selected heads, edges of the longest list]

  int64_t heads() const {
    return selection.heads.empty() ? problem->shape.heads
                                   : static_cast<int64_t>(selection.heads.size());
  }
  int64_t head(int64_t n) const {
    return selection.heads.empty() ? n : selection.heads[static_cast<size_t>(n)];
  }
  int64_t blocks() const {
    if (column_sums != nullptr && is_ordered(problem->normaliser)) return 1;
    const int64_t size = column_sums == nullptr ? kBackwardRows : kTileKeys;
    const int64_t count = column_sums == nullptr ? selection.rows : problem->shape.keys;
    return (count + size - 1) / size;
  }
  int64_t tasks() const { return problem->shape.batch * heads() * blocks(); }

  // Position of a task: a block of one selected head of one batch entry.
  struct Block {
    int64_t batch, head, block;
  };
  Block place(int64_t task) const {
    return {task / blocks() / heads(), task / blocks() % heads(), task % blocks()};
  }
};

// Backward works on chunks of keys. For sums over several chunks, chunk 0 writes to the caller's
// array and the others to copies, which are then added in chunk order.
template <class T>
struct BackwardPlan {
  const Problem<T>* problem;
  AdditivePlan<T> additive;  // for the scores
  AdditivePlan<T> natural;   // for the gradients
  BFloat16Plan bfloat16;
  Upstream<T> upstream;
  Gradients<T> gradients;
  int64_t chunks;
  int64_t chunk_keys;
  // [batch, heads, queries], null if the normaliser needs none. If the order of the keys matters:
  // [chunks, batch, heads, queries], null for one chunk; a reference is -log4 of what the keys
  // after the chunk leave, a delta the sum of p dp of the keys before it.
  RowShifts<T> shifts;
  T* deltas;          // as the shifts, for sparse and ordered normalisers
  T* by_alpha;        // [batch, heads, queries], if alphas have a gradient
  T* partial;         // [chunks - 1, batch, heads, queries, depth]; valid if set in `sees`
  uint8_t* sees;      // [chunks, batch, heads, blocks of kBackwardRows queries] whether a chunk has
                      // keys of their scopes
  T* partial_vector;  // [batch, chunks, heads, depth], for the additive family
  T* partial_slopes;  // [batch, chunks, heads], if slopes have a gradient
  T* partial_centres;          // [chunks, batch, heads, queries], if centres or widths have one
  T* partial_widths;           // as partial_centres
  T* partial_relative;         // [chunks - 1, relative_size]
  double* partial_query_sums;  // as partial_centres, if sums of queries have a gradient
  int64_t relative_size;       // extent of Bias::relative by its strides, in numbers
  T* partial_products;         // [chunks - 1] of Bias::query_products, if they have a gradient

  int64_t tasks() const { return problem->shape.batch * problem->shape.key_heads * chunks; }

  View<T> query_gradient(int64_t chunk) const {
    const Shape& s = problem->shape;
    if (chunk == 0) return gradients.query;
    return contiguous(partial + (chunk - 1) * s.batch * s.heads * s.queries * s.depth, s.heads,
                      s.queries, s.depth);
  }

  uint8_t& sees_block(int64_t chunk, int64_t batch, int64_t head, int64_t query) const {
    const Shape& s = problem->shape;
    const int64_t row = (chunk * s.batch + batch) * s.heads + head;
    return sees[row * blocks() + query / kBackwardRows];
  }
  int64_t blocks() const { return (problem->shape.queries + kBackwardRows - 1) / kBackwardRows; }

  // Room for the keys of a chunk: products of bf16 write whole blocks of kBFloat16Rows.
  int64_t chunk_rows() const {
    return chunk_keys + (bfloat16.kernels == nullptr ? 0 : kBFloat16Rows);
  }

  T* relative_gradient(int64_t chunk) const {
    return chunk == 0 ? gradients.relative : partial_relative + (chunk - 1) * relative_size;
  }

  int64_t product_size() const {
    const Shape& s = problem->shape;
    return s.batch * s.heads * s.queries * problem->bias.product_columns;
  }
  // Gradient of Bias::query_products by a chunk.
  T* product_gradient(int64_t chunk) const {
    return chunk == 0 ? gradients.query_products : partial_products + (chunk - 1) * product_size();
  }
};

// Code of this CPU's target, chosen at run time.
template <class T>
using ForwardTask = void (*)(const ForwardPlan<T>& plan, int64_t task, Arena<T>& arena);
template <class T>
using SummaryTask = void (*)(const SummaryPlan<T>& plan, int64_t task, Arena<T>& arena);
template <class T>
using BackwardTask = void (*)(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena);

template <class T>
using AdditiveTask = void (*)(const AdditivePlan<T>& plan, int64_t task, Arena<T>& arena);

// Packs the arrays of the plan for one block of keys of one head, task = head * blocks + block.
using BFloat16Task = void (*)(const BFloat16Plan& plan, int64_t task, Arena<float>& arena);
BFloat16Task bfloat16_task();
// Whether the target's vectors are as wide as the products'. Querying Highway for the
// targets would execute cpuid each time, which traps in a virtual machine.
bool packs_bfloat16();

// Preparation tasks: one per head, then, after all of them, one per head and block of keys.
template <class T>
AdditiveTask<T> additive_head_task();
template <class T>
AdditiveTask<T> additive_key_task();
template <class T>
ForwardTask<T> forward_task();
template <class T>
SummaryTask<T> summary_task();
// Shifts of a block of the selected rows of one head, from the lse if it is exact enough.
template <class T>
SummaryTask<T> shift_task();
template <class T>
BackwardTask<T> backward_task();
// Shifts and deltas of one block of kBackwardRows queries of one head.
template <class T>
BackwardTask<T> delta_task();

}  // namespace attend::kernels
