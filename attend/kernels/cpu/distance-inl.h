#if defined(ATTEND_KERNELS_DISTANCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_DISTANCE_INL_H_
#undef ATTEND_KERNELS_DISTANCE_INL_H_
#else
#define ATTEND_KERNELS_DISTANCE_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/matmul-inl.h"
#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Squared distances: s_ij = -scale |q_i - k_j|^2 = scale (2 (q_i - c) . (k_j - c) - N), N = |q_i -
// c|^2 + |k_j - c|^2, for any c; c is the mean of the panel's queries. With u half a unit in the
// last place, rounding q - c, k - c and the terms of the sum, each at most scale N, leaves an error
// of a few u scale N. If |q_i - k_j|^2 >= N / 4, this is a few u of the score, as exact as a sum of
// squared differences. Scores of nearer pairs, and scores with an overflowing N, are computed as
// such sums.
template <class T>
class SquaredDistanceScores : public TileScores<T> {
 public:
  SquaredDistanceScores(const Problem<T>& problem, Arena<T>& arena)
      : problem_(problem),
        scale_(T(problem.score.scale * score_unit(problem.normaliser))),
        keys_(arena.take(kTileKeys * RoundUpToLanes<T>(problem.shape.depth))),
        key_norms_(arena.take(kTileKeys)) {}

  // A panel holds q - c as [depth][width], scaled for the product, then q, then scale |q - c|^2,
  // then c.
  int64_t panel_size(int64_t width) const override {
    return 2 * problem_.shape.depth * width + width + problem_.shape.depth;
  }
  static const T* centre(const T* panel, int64_t depth, int64_t width) {
    return panel + 2 * depth * width + width;
  }

  void load_queries(const Row& first, int64_t rows, int64_t width, T* panel) const override {
    const Tag<T> d;
    const int64_t depth = problem_.shape.depth;
    T* plain = panel + depth * width;
    T* norms = plain + depth * width;
    T* middle = norms + width;
    LoadPanel(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
              rows, depth, plain, width);
    std::fill_n(norms, width, T(0));
    for (int64_t a = 0; a < depth; ++a) {
      T* row = plain + a * width;
      auto sum = hn::Zero(d);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>)
        sum = hn::MulAdd(hn::Load(d, row + lane), Set<T>(1 / static_cast<T>(rows)), sum);
      const auto mean = hn::SumOfLanes(d, sum);
      middle[a] = hn::GetLane(mean);
      std::fill(row + rows, row + width, middle[a]);  // as far from the keys as the queries
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        const auto q = hn::Sub(hn::Load(d, row + lane), mean);
        const auto scaled = hn::Mul(q, Set<T>(scale_));
        hn::Store(hn::MulAdd(q, scaled, hn::Load(d, norms + lane)), d, norms + lane);
        hn::Store(hn::Add(scaled, scaled), d, panel + a * width + lane);
      }
    }
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const override {
    const Tag<T> d;
    const int64_t depth = problem_.shape.depth, stride = problem_.key.row_stride;
    const T* norms = panel + 2 * depth * width;
    const T* key = problem_.key.row(first.batch, KeyHead(problem_.shape, first.head), first_key);
    for (int64_t j = 0; j < keys; ++j) {
      key_norms_[j] =
          scale_ * centre_key(key + j * stride, norms + width, keys_ + j * depth, depth);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        hn::Store(hn::Sub(Set<T>(-key_norms_[j]), hn::Load(d, norms + lane)), d,
                  tile + j * width + lane);
      }
    }
    Multiply<T>(keys, width, depth, {keys_, depth, 1}, {panel, width}, true, {tile, width},
                this->ahead_);
    has_near_ = false;
    for (int64_t j = 0; j < keys; ++j) {
      const auto norm = Set<T>(key_norms_[j]);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        T* to = tile + j * width + lane;
        const auto size = hn::Abs(hn::Add(norm, hn::Load(d, norms + lane)));
        const auto beyond = hn::NegMulAdd(size, Set<T>(kNear), hn::Abs(hn::Load(d, to)));
        if (HWY_LIKELY(hn::AllTrue(d, hn::Ge(beyond, hn::Zero(d))))) continue;
        has_near_ = true;
        sum_differences(key + j * stride, panel + depth * width + lane, width, to);
      }
    }
  }

  // Whether the last tile had pairs that are much nearer to each other than to c.
  bool has_near() const { return has_near_; }

 private:
  static constexpr T kNear = 0.25;

  // Scores of one key and the vector of queries at `query`, [depth][width].
  HWY_NOINLINE void sum_differences(const T* HWY_RESTRICT key, const T* HWY_RESTRICT query,
                                    int64_t width, T* HWY_RESTRICT to) const {
    const Tag<T> d;
    constexpr int kSums = 4;  // for the latency of a multiply-add on one port
    const int64_t depth = problem_.shape.depth;
    Vec<T> sum[kSums];
    for (auto& s : sum) s = hn::Zero(d);
    int64_t a = 0;
    for (; a + kSums <= depth; a += kSums) {
#pragma GCC unroll 4
      for (int n = 0; n < kSums; ++n) {
        const auto x = hn::Sub(hn::Load(d, query + (a + n) * width), Set<T>(key[a + n]));
        sum[n] = hn::MulAdd(x, x, sum[n]);
      }
    }
    for (; a < depth; ++a) {
      const auto x = hn::Sub(hn::Load(d, query + a * width), Set<T>(key[a]));
      sum[0] = hn::MulAdd(x, x, sum[0]);
    }
    const auto total = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
    hn::Store(hn::Mul(total, Set<T>(-scale_)), d, to);
  }

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
  T* keys_;       // [kTileKeys][depth] k - c
  T* key_norms_;  // [kTileKeys] scale |k - c|^2
  mutable bool has_near_ = false;
};

// ds_ij gives dq_i = -2 scale sum_j ds_ij (q_i - k_j) and dk_j = 2 scale sum_i ds_ij (q_i - k_j).
// Matrix products of ds with q - c and k - c give the sums, with the centre c of the scores. In
// tiles with pairs so near that products would cancel, differences are summed pair by pair.
template <class T>
class SquaredDistanceGradients : public TileGradients<T> {
 public:
  // `scores` must have scored the tiles.
  SquaredDistanceGradients(const BackwardPlan<T>& plan, const SquaredDistanceScores<T>& scores,
                           Arena<T>& arena)
      : problem_(*plan.problem),
        scores_(scores),
        depth_(problem_.shape.depth),
        padded_(RoundUpToLanes<T>(depth_)),
        plain_rows_(arena.take(padded_ * kBackwardRows)),
        rows_(arena.take(padded_ * kBackwardRows)),
        near_(arena.take(padded_ * kBackwardRows)),
        keys_(arena.take(padded_ * kTileKeys)),
        row_sums_(arena.take(kBackwardRows)),
        query_gradient_(arena.take(depth_ * kBackwardRows)),
        key_gradient_(arena.take(padded_ * plan.chunk_keys)) {
    std::fill_n(key_gradient_, padded_ * plan.chunk_keys, T(0));
  }

  void load_queries(const Row& first, int64_t rows, int64_t width, const T* panel) override {
    first_ = first;
    query_count_ = rows;
    centre_ = scores_.centre(panel, depth_, width);
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth_, width, plain_rows_, padded_);
    std::copy_n(plain_rows_, width * padded_, rows_);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t a = 0; a < depth_; ++a) rows_[r * padded_ + a] -= centre_[a];
    }
    std::fill_n(row_sums_, width, T(0));
    std::fill_n(near_, width * padded_, T(0));
    std::fill_n(query_gradient_, depth_ * width, T(0));
  }

  void add(const T* tile, int64_t first_key, int64_t chunk_key, int64_t keys,
           int64_t width) override {
    const int64_t head = KeyHead(problem_.shape, first_.head);
    const T* key = problem_.key.row(first_.batch, head, first_key);
    T* gradient = key_gradient_ + chunk_key * padded_;
    scores_.has_near() ? add_differences(tile, key, keys, width, gradient)
                       : add_products(tile, key, keys, width, gradient);
  }

  void store_query_gradient(int64_t rows, int64_t width, const View<T>& to) override {
    const T scale = T(2 * problem_.score.scale);
    for (int64_t r = 0; r < rows; ++r) {
      T* gradient = to.row(first_.batch, first_.head, first_.query + r);
      for (int64_t a = 0; a < depth_; ++a) {
        const T far = query_gradient_[a * width + r] - rows_[r * padded_ + a] * row_sums_[r];
        gradient[a] = scale * (far - near_[r * padded_ + a]);
      }
    }
  }

  void store_key_gradient(int64_t chunk_key, T* to) const override {
    const T* from = key_gradient_ + chunk_key * padded_;
    for (int64_t a = 0; a < depth_; ++a) to[a] = T(2 * problem_.score.scale) * from[a];
  }

 private:
  void add_products(const T* tile, const T* key, int64_t keys, int64_t width, T* gradient) {
    const Tag<T> d;
    for (int64_t j = 0; j < keys; ++j, key += problem_.key.row_stride) {
      T* to = keys_ + j * padded_;
      for (int64_t a = 0; a < depth_; ++a) to[a] = key[a] - centre_[a];
      std::fill(to + depth_, to + padded_, T(0));
      auto column = hn::Zero(d);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        const auto ds = hn::Load(d, tile + j * width + lane);
        column = hn::Add(column, ds);
        hn::Store(hn::Add(hn::Load(d, row_sums_ + lane), ds), d, row_sums_ + lane);
      }
      const auto sum = hn::SumOfLanes(d, column);
      for (int64_t a = 0; a < padded_; a += kLanes<T>) {
        T* cell = gradient + j * padded_ + a;
        hn::Store(hn::NegMulAdd(sum, hn::Load(d, to + a), hn::Load(d, cell)), d, cell);
      }
    }
    Multiply<T>(depth_, width, keys, {keys_, 1, padded_}, {tile, width}, true,
                {query_gradient_, width}, this->ahead_);
    Multiply<T>(keys, padded_, query_count_, {tile, width, 1}, {rows_, padded_}, true,
                {gradient, padded_}, this->ahead_);
  }

  // Sums pair by pair; lanes are dimensions.
  void add_differences(const T* tile, const T* key, int64_t keys, int64_t width, T* gradient) {
    constexpr int kStep = 4;  // keys per step, each with itself and its sum in registers
    LoadRows(key, problem_.key.row_stride, keys, depth_, keys, keys_, padded_);
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      int64_t j = 0;
      for (; j + kStep <= keys; j += kStep)
        add_step<kStep>(keys_ + j * padded_ + a, a, tile + j * width, width,
                        gradient + j * padded_ + a);
      for (; j < keys; ++j)
        add_step<1>(keys_ + j * padded_ + a, a, tile + j * width, width,
                    gradient + j * padded_ + a);
    }
  }

  template <int kCount>
  HWY_NOINLINE void add_step(const T* HWY_RESTRICT key, int64_t a, const T* HWY_RESTRICT tile,
                             int64_t width, T* HWY_RESTRICT gradient) {
    const Tag<T> d;
    const int64_t padded = padded_;
    const T* HWY_RESTRICT query = plain_rows_ + a;
    T* HWY_RESTRICT near = near_ + a;
    Vec<T> k[kCount], sum[kCount];
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      k[n] = hn::Load(d, key + n * padded);
      sum[n] = hn::Load(d, gradient + n * padded);
    }
    for (int64_t i = 0; i < query_count_; ++i) {
      const auto q = hn::Load(d, query + i * padded);
      auto row = hn::Load(d, near + i * padded);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) {
        const auto moved = hn::Mul(Set<T>(tile[n * width + i]), hn::Sub(q, k[n]));
        row = hn::Add(row, moved);
        sum[n] = hn::Add(sum[n], moved);
      }
      hn::Store(row, d, near + i * padded);
    }
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) hn::Store(sum[n], d, gradient + n * padded);
  }

  const Problem<T>& problem_;
  const SquaredDistanceScores<T>& scores_;
  int64_t depth_, padded_;
  Row first_;
  int64_t query_count_ = 0;
  const T* centre_ = nullptr;
  T* plain_rows_;      // [width][padded] q
  T* rows_;            // [width][padded] q - c
  T* near_;            // [width][padded] sum_j ds_ij (q_i - k_j) over tiles with near pairs
  T* keys_;            // [keys][padded] k - c, or k
  T* row_sums_;        // [width] sum_j ds_ij over the other tiles
  T* query_gradient_;  // [depth][width] sum_j ds_ij (k_j - c) over the other tiles
  T* key_gradient_;    // [chunk_keys][padded]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
