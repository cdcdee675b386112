#if defined(ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#undef ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#else
#define ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/additive-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Gradients of the additive family. A vector holds as many dimensions of one query and key, so that
// every sum is vertical. With y = 1 / (A + E), tanh = 1 - 2 E y and tanh' = 4 A y E y. Since
// E y = 1 - A y, the sums that every gradient needs are those of t = ds y and u = ds y y alone:
//   dq_i = 4 scale v A_i (sum_j t - A_i sum_j u)      dk_j = 4 scale v E_j (sum_i t - E_j sum_i u)
//   dv = scale sum_ij (ds - 2 E_j t)
// The tile is small: the y of all its triples wait in the second-level cache from the scores to the
// gradients. A hard vector has r = 1 / (1 + e^(2(q + k))) for y and g = ds r (1 - r) for u:
//   dq_i = 4 scale v sum_j g                          dk_j = 4 scale v sum_i g
template <class T>
class AdditiveGradients {
 public:
  static constexpr int64_t kRows = std::max<int64_t>(16, kLanes<T>);
  static constexpr int64_t kKeys = 16;

  AdditiveGradients(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        depth_(problem_.shape.depth),
        padded_(plan.additive.padded),
        task_(task),
        factor_(arena.take(padded_ * kRows)),
        query_t_(arena.take(padded_ * kRows)),
        query_u_(arena.take(padded_ * kRows)),
        key_t_(arena.take(padded_ * plan.chunk_keys)),
        key_u_(arena.take(padded_ * plan.chunk_keys)),
        key_gradient_(arena.take(padded_ * plan.chunk_keys)),
        kept_(arena.take(padded_ / kLanes<T> * kKeptStride)) {
    std::fill_n(key_gradient_, padded_ * plan.chunk_keys, T(0));
  }

  void begin_head(int64_t batch, int64_t head) {
    head_ = batch * problem_.shape.heads + head;
    total_ = 0;
    std::fill_n(key_t_, padded_ * plan_.chunk_keys, T(0));
    std::fill_n(key_u_, padded_ * plan_.chunk_keys, T(0));
  }

  // A (q itself in hard vectors) in rows [width][padded].
  void load_queries(const Row& first, int64_t rows, int64_t width) {
    const Tag<T> d;
    first_ = first;
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth_, width, factor_, padded_);
    const T* centre = plan_.additive.centre + head_ * padded_;
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      if (is_hard(a)) continue;
      for (int64_t r = 0; r < width; ++r) {
        T* at = factor_ + r * padded_ + a;
        const auto x = hn::Sub(hn::Load(d, at), hn::Load(d, centre + a));
        hn::Store(ExpOfTwice<T>(Clamp<T>(x, AdditiveLimits<T>::kClamp)), d, at);
      }
    }
    std::fill_n(query_t_, padded_ * width, T(0));
    std::fill_n(query_u_, padded_ * width, T(0));
  }

  void scores(int64_t first_key, int64_t keys, int64_t width, T* tile) const {
    const int64_t at = (head_ * problem_.shape.keys + first_key) * padded_;
    const T* factor = plan_.additive.factor + at;
    const T* weight = plan_.additive.weight + at;
    int64_t j = 0;
    for (; j + kStep <= keys; j += kStep) {
      for (int64_t i = 0; i < width; ++i) score_step<kStep>(i, j, width, factor, weight, tile);
    }
    for (; j < keys; ++j) {
      for (int64_t i = 0; i < width; ++i) score_step<1>(i, j, width, factor, weight, tile);
    }
  }

  // tile[j][i] = ds_ij
  void add(const T* tile, int64_t, int64_t chunk_key, int64_t keys, int64_t width) {
    const Tag<T> d;
    auto total = hn::Zero(d);
    for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
      total = hn::Add(total, hn::Load(d, tile + i));
    }
    total_ += hn::GetLane(hn::SumOfLanes(d, total));
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      const bool hard = is_hard(a);
      int64_t j = 0;
      for (; j + kStep <= keys; j += kStep) {
        hard ? add_step<kStep, true>(a, j, chunk_key, width, tile)
             : add_step<kStep, false>(a, j, chunk_key, width, tile);
      }
      for (; j < keys; ++j) {
        hard ? add_step<1, true>(a, j, chunk_key, width, tile)
             : add_step<1, false>(a, j, chunk_key, width, tile);
      }
    }
  }

  void store_query_gradient(int64_t rows, int64_t, const View<T>& to) {
    const T* v = problem_.score.vector + first_.head * problem_.score.vector_head_stride;
    for (int64_t r = 0; r < rows; ++r) {
      T* gradient = to.row(first_.batch, first_.head, first_.query + r);
      for (int64_t a = 0; a < depth_; ++a) {
        const int64_t at = r * padded_ + a;
        const T slope =
            is_hard(a) ? query_u_[at] : factor_[at] * (query_t_[at] - factor_[at] * query_u_[at]);
        gradient[a] = T(4 * problem_.score.scale) * v[a] * slope;
      }
    }
  }

  // The head's share of its keys' gradients, and of dv.
  void end_head(int64_t head, int64_t first_key, int64_t keys) {
    const T* v = problem_.score.vector + head * problem_.score.vector_head_stride;
    const T* factor = plan_.additive.factor + (head_ * problem_.shape.keys + first_key) * padded_;
    T* vector = plan_.partial_vector + (vector_chunk() * problem_.shape.heads + head) * depth_;
    std::fill_n(vector, depth_, T(problem_.score.scale) * total_);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t a = 0; a < depth_; ++a) {
        const int64_t at = j * padded_ + a;
        const T e = is_hard(a) ? T(1) : factor[at];
        const T slope = is_hard(a) ? key_u_[at] : e * (key_t_[at] - e * key_u_[at]);
        key_gradient_[at] += T(4 * problem_.score.scale) * v[a] * slope;
        vector[a] -= T(2 * problem_.score.scale) * e * key_t_[at];
      }
    }
  }

  void store_key_gradient(int64_t chunk_key, T* to) const {
    std::copy_n(key_gradient_ + chunk_key * padded_, depth_, to);
  }

 private:
  static constexpr int kStep = 4;
  // y of vector a, key j, row i at kept_[a * kKeptStride + (j * kRows + i) * lanes]; the odd line
  // keeps the vectors of one pair out of one cache set.
  static constexpr int64_t kKeptStride = (kRows * kKeys + 5) * kLanes<T>;

  bool is_hard(int64_t a) const { return plan_.additive.hard[head_ * padded_ + a] != 0; }
  int64_t vector_chunk() const {
    return task_ / plan_.chunks / problem_.shape.key_heads * plan_.chunks + task_ % plan_.chunks;
  }
  T* kept(int64_t a, int64_t j, int64_t i) const {
    return kept_ + a / kLanes<T> * kKeptStride + (j * kRows + i) * kLanes<T>;
  }

  template <int kCount>
  HWY_INLINE void score_step(int64_t i, int64_t j, int64_t width, const T* HWY_RESTRICT factor,
                             const T* HWY_RESTRICT weight, T* HWY_RESTRICT tile) const {
    const Tag<T> d;
    Vec<T> sum[kCount];
    for (auto& s : sum) s = hn::Zero(d);
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      const auto q = hn::Load(d, factor_ + i * padded_ + a);
      const bool hard = is_hard(a);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) {
        const int64_t at = (j + n) * padded_ + a;
        const auto x = hn::Add(q, hn::Load(d, factor + at));
        const auto y = HWY_UNLIKELY(hard) ? hard_ratio(x) : Reciprocal<T>(x);
        hn::Store(y, d, kept(a, j + n, i));
        sum[n] = hn::MulAdd(hn::Load(d, weight + at), y, sum[n]);
      }
    }
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      tile[(j + n) * width + i] =
          plan_.additive.constant[head_] + hn::GetLane(hn::SumOfLanes(d, sum[n]));
    }
  }

  static HWY_NOINLINE Vec<T> hard_ratio(Vec<T> x) {
    const auto power = ExpOfTwice<T>(Clamp<T>(x, AdditiveLimits<T>::kClamp));
    return hn::Div(Set<T>(1), hn::Add(Set<T>(1), power));
  }

  template <int kCount, bool kHard>
  HWY_INLINE void add_step(int64_t a, int64_t j, int64_t chunk_key, int64_t width,
                           const T* HWY_RESTRICT tile) {
    const Tag<T> d;
    T* HWY_RESTRICT key_t = key_t_ + (chunk_key + j) * padded_ + a;
    T* HWY_RESTRICT key_u = key_u_ + (chunk_key + j) * padded_ + a;
    const T* HWY_RESTRICT y = kept(a, j, 0);
    Vec<T> t_sum[kCount], u_sum[kCount];
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      t_sum[n] = hn::Load(d, key_t + n * padded_);
      u_sum[n] = hn::Load(d, key_u + n * padded_);
    }
    for (int64_t i = 0; i < width; ++i) {
      T* HWY_RESTRICT query_t = query_t_ + i * padded_ + a;
      T* HWY_RESTRICT query_u = query_u_ + i * padded_ + a;
      auto t_row = hn::Load(d, query_t), u_row = hn::Load(d, query_u);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) {
        const auto ratio = hn::Load(d, y + (n * kRows + i) * kLanes<T>);
        const auto t = hn::Mul(Set<T>(tile[(j + n) * width + i]), ratio);
        t_sum[n] = hn::Add(t_sum[n], t);
        if constexpr (kHard) {
          const auto g = hn::NegMulAdd(t, ratio, t);
          u_row = hn::Add(u_row, g);
          u_sum[n] = hn::Add(u_sum[n], g);
        } else {
          t_row = hn::Add(t_row, t);
          u_row = hn::MulAdd(t, ratio, u_row);
          u_sum[n] = hn::MulAdd(t, ratio, u_sum[n]);
        }
      }
      hn::Store(t_row, d, query_t);
      hn::Store(u_row, d, query_u);
    }
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      hn::Store(t_sum[n], d, key_t + n * padded_);
      hn::Store(u_sum[n], d, key_u + n * padded_);
    }
  }

  const BackwardPlan<T>& plan_;
  const Problem<T>& problem_;
  int64_t depth_, padded_, task_;
  int64_t head_ = 0;
  Row first_;
  T total_ = 0;      // sum of ds over the head's tiles
  T* factor_;        // [width][padded] A
  T* query_t_;       // [width][padded] sum_j t
  T* query_u_;       // [width][padded] sum_j u
  T* key_t_;         // [chunk_keys][padded] sum_i t
  T* key_u_;         // [chunk_keys][padded] sum_i u
  T* key_gradient_;  // [chunk_keys][padded]
  T* kept_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
