#if defined(ATTEND_KERNELS_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_SCORES_INL_H_
#undef ATTEND_KERNELS_SCORES_INL_H_
#else
#define ATTEND_KERNELS_SCORES_INL_H_
#endif

#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/rows_ahead-inl.h"
#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Interface of a family. Calls are virtual, since there is only one per tile; the passes are
// compiled once for all families.

inline int64_t KeyHead(const Shape& shape, int64_t head) {
  return head / (shape.heads / shape.key_heads);
}

// v of the additive family for a query head.
template <class T>
const T* HeadVector(const Problem<T>& problem, int64_t head) {
  return problem.score.vector + head * problem.score.vector_head_stride;
}

// Scores of tiles.
template <class T>
class TileScores {
 public:
  virtual ~TileScores() = default;

  // Size of a panel of `width` queries, as written by load_queries.
  virtual int64_t panel_size(int64_t width) const = 0;

  virtual void load_queries(const Row& first, int64_t rows, int64_t width, T* panel) const = 0;

  // tile[j][i] = score of query i of the panel and key first_key + j, in the unit of the
  // normaliser.
  virtual void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel,
                      int64_t width, T* tile) const = 0;

  // From now on leaves a factor of the scores to the caller; returns it, above 0.
  virtual T defer_scale() { return 1; }

  // Rows to fetch during its products.
  void set_ahead(RowsAhead* ahead) { ahead_ = ahead; }

 protected:
  RowsAhead* ahead_ = nullptr;
};

// Gradients of queries, keys and parameters for one chunk of the keys of one key head.
template <class T>
class TileGradients {
 public:
  virtual ~TileGradients() = default;

  // Called before and after each query head that shares the chunk.
  virtual void begin_head(int64_t, int64_t) {}
  virtual void end_head(int64_t /*head*/, int64_t /*first_key*/, int64_t /*keys*/) {}

  // Loads a panel of queries, as loaded by TileScores.
  virtual void load_queries(const Row& first, int64_t rows, int64_t width, const T* panel) = 0;

  // tile[j][i] = ds_ij in natural units, for keys first_key + j, that is, keys chunk_key + j of the
  // chunk.
  virtual void add(const T* tile, int64_t first_key, int64_t chunk_key, int64_t keys,
                   int64_t width) = 0;

  virtual void store_query_gradient(int64_t rows, int64_t width, const View<T>& to) = 0;
  virtual void store_key_gradient(int64_t chunk_key, T* to) const = 0;

  // Rows to fetch during its products.
  void set_ahead(RowsAhead* ahead) { ahead_ = ahead; }

 protected:
  RowsAhead* ahead_ = nullptr;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
