#if defined(ATTEND_KERNELS_DISTANCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_DISTANCE_INL_H_
#undef ATTEND_KERNELS_DISTANCE_INL_H_
#else
#define ATTEND_KERNELS_DISTANCE_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/matmul-inl.h"
#include "attend/kernels/panel-inl.h"
#include "attend/kernels/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Squared distances: s_ij = -scale |q_i - k_j|^2 = scale (2 (q_i - c) . (k_j - c) - |q_i - c|^2 -
// |k_j - c|^2) for any c. With c the mean of the panel's queries the terms are not much larger than
// their sum. A panel holds q - c as [depth][width], scaled for the product, then scale |q - c|^2,
// then c.
template <class T>
class SquaredDistanceScores : public TileScores<T> {
 public:
  SquaredDistanceScores(const Problem<T>& problem, Arena<T>& arena)
      : problem_(problem),
        scale_(T(problem.score.scale * score_unit(problem.normaliser))),
        keys_(arena.take(kTileKeys * RoundUpToLanes<T>(problem.shape.depth))) {}

  int64_t panel_size(int64_t width) const override {
    return problem_.shape.depth * width + width + problem_.shape.depth;
  }

  void load_queries(const Row& first, int64_t rows, int64_t width, T* panel) const override {
    const Tag<T> d;
    const int64_t depth = problem_.shape.depth;
    T* norms = panel + depth * width;
    T* centre = norms + width;
    LoadPanel(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
              rows, depth, panel, width);
    std::fill_n(norms, width, T(0));
    for (int64_t a = 0; a < depth; ++a) {
      T sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += panel[a * width + r];
      centre[a] = sum / static_cast<T>(rows);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        T* at = panel + a * width + lane;
        const auto q = hn::Sub(hn::Load(d, at), Set<T>(centre[a]));
        const auto scaled = hn::Mul(q, Set<T>(scale_));
        hn::Store(hn::MulAdd(q, scaled, hn::Load(d, norms + lane)), d, norms + lane);
        hn::Store(hn::Add(scaled, scaled), d, at);
      }
    }
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const override {
    const Tag<T> d;
    const int64_t depth = problem_.shape.depth;
    const T* norms = panel + depth * width;
    const T* key = problem_.key.row(first.batch, KeyHead(problem_.shape, first.head), first_key);
    for (int64_t j = 0; j < keys; ++j) {
      const T norm =
          centre_key(key + j * problem_.key.row_stride, norms + width, keys_ + j * depth, depth);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        hn::Store(hn::Sub(Set<T>(-scale_ * norm), hn::Load(d, norms + lane)), d,
                  tile + j * width + lane);
      }
    }
    Multiply<T>(keys, width, depth, {keys_, depth, 1}, {panel, width}, true, {tile, width});
  }

 private:
  // to = key - centre; returns |key - centre|^2.
  static T centre_key(const T* key, const T* centre, T* to, int64_t depth) {
    const Tag<T> d;
    auto sum = hn::Zero(d);
    int64_t a = 0;
    for (; a + kLanes<T> <= depth; a += kLanes<T>) {
      const auto x = hn::Sub(hn::LoadU(d, key + a), hn::LoadU(d, centre + a));
      sum = hn::MulAdd(x, x, sum);
      hn::StoreU(x, d, to + a);
    }
    T total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; a < depth; ++a) {
      to[a] = key[a] - centre[a];
      total += to[a] * to[a];
    }
    return total;
  }

  const Problem<T>& problem_;
  T scale_;
  T* keys_;  // [kTileKeys][depth] k - c
};

// ds_ij gives dq_i = -2 scale sum_j ds_ij (q_i - k_j) and dk_j = 2 scale sum_i ds_ij (q_i - k_j).
// The sums are taken with q - c and k - c, c a query of the block.
template <class T>
class SquaredDistanceGradients : public TileGradients<T> {
 public:
  SquaredDistanceGradients(const BackwardPlan<T>& plan, Arena<T>& arena)
      : problem_(*plan.problem),
        depth_(problem_.shape.depth),
        padded_(RoundUpToLanes<T>(depth_)),
        rows_(arena.take(padded_ * kBackwardRows)),
        keys_(arena.take(padded_ * kTileKeys)),
        row_sums_(arena.take(kBackwardRows)),
        query_gradient_(arena.take(depth_ * kBackwardRows)),
        key_gradient_(arena.take(padded_ * plan.chunk_keys)) {
    std::fill_n(key_gradient_, padded_ * plan.chunk_keys, T(0));
  }

  void load_queries(const Row& first, int64_t rows, int64_t width, const T*) override {
    first_ = first;
    query_count_ = rows;
    const T* from = problem_.query.row(first.batch, first.head, first.query);
    LoadRows(from, problem_.query.row_stride, rows, depth_, width, rows_, padded_);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t a = 0; a < depth_; ++a) rows_[r * padded_ + a] -= from[a];
    }
    std::fill_n(row_sums_, width, T(0));
    std::fill_n(query_gradient_, depth_ * width, T(0));
  }

  void add(const T* tile, int64_t first_key, int64_t chunk_key, int64_t keys,
           int64_t width) override {
    const Tag<T> d;
    const T* centre = problem_.query.row(first_.batch, first_.head, first_.query);
    const int64_t head = KeyHead(problem_.shape, first_.head);
    T* gradient = key_gradient_ + chunk_key * padded_;
    for (int64_t j = 0; j < keys; ++j) {
      const T* key = problem_.key.row(first_.batch, head, first_key + j);
      T* to = keys_ + j * padded_;
      for (int64_t a = 0; a < depth_; ++a) to[a] = key[a] - centre[a];
      std::fill(to + depth_, to + padded_, T(0));
      auto column = hn::Zero(d);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        const auto ds = hn::Load(d, tile + j * width + lane);
        column = hn::Add(column, ds);
        hn::Store(hn::Add(hn::Load(d, row_sums_ + lane), ds), d, row_sums_ + lane);
      }
      const auto sum = hn::SumOfLanes(d, column);
      for (int64_t a = 0; a < padded_; a += kLanes<T>) {
        T* at = gradient + j * padded_ + a;
        hn::Store(hn::NegMulAdd(sum, hn::Load(d, to + a), hn::Load(d, at)), d, at);
      }
    }
    Multiply<T>(depth_, width, keys, {keys_, 1, padded_}, {tile, width}, true,
                {query_gradient_, width});
    Multiply<T>(keys, padded_, query_count_, {tile, width, 1}, {rows_, padded_}, true,
                {gradient, padded_});
  }

  void store_query_gradient(int64_t rows, int64_t width, const View<T>& to) override {
    const T scale = T(2 * problem_.score.scale);
    for (int64_t r = 0; r < rows; ++r) {
      T* gradient = to.row(first_.batch, first_.head, first_.query + r);
      for (int64_t a = 0; a < depth_; ++a) {
        gradient[a] =
            scale * (query_gradient_[a * width + r] - rows_[r * padded_ + a] * row_sums_[r]);
      }
    }
  }

  void store_key_gradient(int64_t chunk_key, T* to) const override {
    const T* from = key_gradient_ + chunk_key * padded_;
    for (int64_t a = 0; a < depth_; ++a) to[a] = T(2 * problem_.score.scale) * from[a];
  }

 private:
  const Problem<T>& problem_;
  int64_t depth_, padded_;
  Row first_;
  int64_t query_count_ = 0;
  T* rows_;            // [width][padded] q - c
  T* keys_;            // [keys][padded] k - c
  T* row_sums_;        // [width] sum_j ds_ij
  T* query_gradient_;  // [depth][width] sum_j ds_ij (k_j - c)
  T* key_gradient_;    // [chunk_keys][padded]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
