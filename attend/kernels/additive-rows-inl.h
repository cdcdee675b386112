#if defined(ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_
#undef ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_
#else
#define ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "attend/kernels/additive-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The additive family for so few queries that preparing the keys would cost more than it saves:
// vectors run along the depth, and each triple takes its own exponential.
template <class T>
class AdditiveRowScores {
 public:
  AdditiveRowScores(const Problem<T>& problem, const AdditivePlan<T>&) : problem_(problem) {}

  int64_t panel_size(int64_t width) const { return problem_.shape.depth * width; }

  void load_queries(const Row& first, int64_t rows, int64_t, T* panel) const {
    const int64_t depth = problem_.shape.depth;
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth, rows, panel, depth);
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const {
    const Shape& s = problem_.shape;
    const T* vector = problem_.score.vector + first.head * problem_.score.vector_head_stride;
    const T scale = T(problem_.score.scale * kLog2E);
    // A panel holds at most `width` of the queries.
    const int64_t rows = std::min(width, s.queries - first.query);
    for (int64_t j = 0; j < keys; ++j) {
      const T* key = problem_.key.row(first.batch, KeyHead(s, first.head), first_key + j);
      std::fill_n(tile + j * width, width, T(0));
      for (int64_t i = 0; i < rows; ++i) {
        tile[j * width + i] = scale * score(panel + i * s.depth, key, vector);
      }
    }
  }

 private:
  // sum_a v_a tanh(q_a + k_a) with tanh(x) = 1 - 2 / (1 + e^(2x))
  T score(const T* query, const T* key, const T* vector) const {
    const Tag<T> d;
    const int64_t depth = problem_.shape.depth;
    auto sum = hn::Zero(d);
    int64_t a = 0;
    for (; a + kLanes<T> <= depth; a += kLanes<T>) {
      const auto x = hn::Add(hn::LoadU(d, query + a), hn::LoadU(d, key + a));
      const auto power = ExpOfTwice<T>(Clamp<T>(x, AdditiveLimits<T>::kClamp));
      const auto ratio = hn::Div(Set<T>(2), hn::Add(Set<T>(1), power));
      sum = hn::MulAdd(hn::LoadU(d, vector + a), hn::Sub(Set<T>(1), ratio), sum);
    }
    T total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; a < depth; ++a) total += vector[a] * std::tanh(query[a] + key[a]);
    return total;
  }

  const Problem<T>& problem_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
