#if defined(ATTEND_KERNELS_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_DOT_INL_H_
#undef ATTEND_KERNELS_DOT_INL_H_
#else
#define ATTEND_KERNELS_DOT_INL_H_
#endif

#include "attend/kernels/matmul-inl.h"
#include "attend/kernels/panel-inl.h"
#include "attend/kernels/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

inline int64_t KeyHead(const Shape& shape, int64_t head) {
  return head / (shape.heads / shape.key_heads);
}

// The dot family: s_ij = scale q_i . k_j.
template <class T>
class DotScores {
 public:
  DotScores(const Problem<T>& problem, const AdditivePlan<T>&) : problem_(problem) {}

  int64_t panel_size(int64_t width) const { return problem_.shape.depth * width; }

  // Queries as a panel [depth][width], scaled so that the scores come out in units of log2.
  void load_queries(const Row& first, int64_t rows, int64_t width, T* panel) const {
    const T* from = problem_.query.row(first.batch, first.head, first.query);
    LoadPanel(from, problem_.query.row_stride, rows, problem_.shape.depth, panel, width);
    ScaleInPlace(panel, panel_size(width), T(problem_.score.scale * kLog2E));
  }

  // tile[j][i] = score of query i and key first_key + j.
  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const {
    const int64_t head = KeyHead(problem_.shape, first.head);
    const T* key = problem_.key.row(first.batch, head, first_key);
    Multiply<T>(keys, width, problem_.shape.depth, {key, problem_.key.row_stride, 1},
                {panel, width}, false, {tile, width});
  }

 private:
  const Problem<T>& problem_;
};

// Its gradients: ds_ij = dL/ds_ij in natural units gives dq_i = scale sum_j ds_ij k_j and
// dk_j = scale sum_i ds_ij q_i.
template <class T>
class DotGradients {
 public:
  static constexpr int64_t kRows = kBackwardRows;
  static constexpr int64_t kKeys = kTileKeys;

  DotGradients(const BackwardPlan<T>& plan, int64_t, Arena<T>& arena)
      : problem_(*plan.problem),
        scores_(problem_, plan.additive),
        depth_(problem_.shape.depth),
        padded_(RoundUpToLanes<T>(depth_)),
        panel_(arena.take(depth_ * kBackwardRows)),
        rows_(arena.take(padded_ * kBackwardRows)),
        query_gradient_(arena.take(depth_ * kBackwardRows)),
        key_gradient_(arena.take(padded_ * plan.chunk_keys)) {
    std::fill_n(key_gradient_, padded_ * plan.chunk_keys, T(0));
  }

  void begin_head(int64_t, int64_t) {}
  void end_head(int64_t, int64_t, int64_t) {}

  void load_queries(const Row& first, int64_t rows, int64_t width) {
    first_ = first;
    scores_.load_queries(first, rows, width, panel_);
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth_, width, rows_, padded_);
    std::fill_n(query_gradient_, depth_ * width, T(0));
  }

  void scores(int64_t first_key, int64_t keys, int64_t width, T* tile) const {
    scores_.scores(first_, first_key, keys, panel_, width, tile);
  }

  // tile[j][i] = ds_ij for keys first_key + j, the chunk's keys chunk_key + j.
  void add(const T* tile, int64_t first_key, int64_t chunk_key, int64_t keys, int64_t width) {
    const int64_t head = KeyHead(problem_.shape, first_.head);
    const T* key = problem_.key.row(first_.batch, head, first_key);
    Multiply<T>(depth_, width, keys, {key, 1, problem_.key.row_stride}, {tile, width}, true,
                {query_gradient_, width});
    Multiply<T>(keys, padded_, width, {tile, width, 1}, {rows_, padded_}, true,
                {key_gradient_ + chunk_key * padded_, padded_});
  }

  void store_query_gradient(int64_t rows, int64_t width, const View<T>& to) {
    ScaleInPlace(query_gradient_, depth_ * width, T(problem_.score.scale));
    Transpose(query_gradient_, width, depth_, rows, to.row(first_.batch, first_.head, first_.query),
              to.row_stride);
  }

  void store_key_gradient(int64_t chunk_key, T* to) const {
    const T* from = key_gradient_ + chunk_key * padded_;
    for (int64_t a = 0; a < depth_; ++a) to[a] = T(problem_.score.scale) * from[a];
  }

 private:
  const Problem<T>& problem_;
  DotScores<T> scores_;
  int64_t depth_, padded_;
  Row first_;
  T* panel_;           // [depth][width] scaled queries
  T* rows_;            // [width][padded] queries
  T* query_gradient_;  // [depth][width]
  T* key_gradient_;    // [chunk_keys][padded]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
