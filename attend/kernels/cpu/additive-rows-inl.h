#if defined(ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_
#undef ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_
#else
#define ATTEND_KERNELS_ADDITIVE_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "attend/kernels/cpu/pair-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The additive family for few queries, for which preparing the keys would cost more than it saves.
// Vectors run along the depth, and each pair computes its own exponentials.
template <class T>
class AdditiveRowScores : public TileScores<T> {
 public:
  explicit AdditiveRowScores(const Problem<T>& problem) : problem_(problem), pair_(problem.score) {}

  int64_t panel_size(int64_t width) const override { return problem_.shape.depth * width; }

  void load_queries(const Row& first, int64_t rows, int64_t, T* panel) const override {
    const int64_t depth = problem_.shape.depth;
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth, rows, panel, depth);
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const override {
    const Shape& s = problem_.shape;
    const T* vector = HeadVector(problem_, first.head);
    const T scale = T(problem_.score.scale * score_unit(problem_.normaliser));
    // A panel holds at most `width` queries.
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
  // sum_a v_a f(q_a + k_a)
  T score(const T* query, const T* key, const T* vector) const {
    const Tag<T> d;
    const int64_t depth = problem_.shape.depth;
    auto sum = hn::Zero(d);
    int64_t a = 0;
    for (; a + kLanes<T> <= depth; a += kLanes<T>) {
      const auto value = pair_.value(hn::LoadU(d, query + a), hn::LoadU(d, key + a));
      sum = hn::MulAdd(hn::LoadU(d, vector + a), value, sum);
    }
    T total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; a < depth; ++a) {
      const T half = pair_.magnitude / 2;
      total += vector[a] * (1 - half + half * std::tanh(pair_.rate * (query[a] + key[a])));
    }
    return total;
  }

  const Problem<T>& problem_;
  ExponentialPair<T> pair_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
