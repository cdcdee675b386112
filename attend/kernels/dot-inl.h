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
  explicit DotScores(const Problem<T>& problem) : problem_(problem) {}

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

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
