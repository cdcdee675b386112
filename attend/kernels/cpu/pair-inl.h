#if defined(ATTEND_KERNELS_PAIR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_PAIR_INL_H_
#undef ATTEND_KERNELS_PAIR_INL_H_
#else
#define ATTEND_KERNELS_PAIR_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/additive-prepare-inl.h"
#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Families evaluated pair by pair, s_ij = scale sum_a v_a f(q_ia, k_ja). A pair defines f in a few
// instructions.

// f = -|q - k|, without v.
template <class T>
struct AbsoluteDistancePair {
  static constexpr bool kHasVector = false;
  explicit AbsoluteDistancePair(const Score<T>&) {}

  HWY_INLINE Vec<T> add(Vec<T> sum, Vec<T> q, Vec<T> k, Vec<T>) const {
    return hn::Sub(sum, hn::Abs(hn::Sub(q, k)));
  }

  // df/dq = -sign(q - k), 0 if equal; df/dk = -df/dq
  static constexpr int kKeySign = -1;
  HWY_INLINE void differentiate(Vec<T> q, Vec<T> k, Vec<T> ds, Vec<T>& slope, Vec<T>&) const {
    const auto down = hn::IfThenElseZero(hn::Gt(q, k), hn::Neg(ds));
    slope = hn::IfThenElse(hn::Lt(q, k), ds, down);
  }
};

// f = max(0, x) with x = q + k.
template <class T>
struct RectifierPair {
  static constexpr bool kHasVector = true;
  explicit RectifierPair(const Score<T>&) {}

  static HWY_INLINE Vec<T> value(Vec<T> x) { return MaxOrSecond<T>(hn::Zero(Tag<T>()), x); }

  HWY_INLINE Vec<T> add(Vec<T> sum, Vec<T> q, Vec<T> k, Vec<T> v) const {
    return hn::MulAdd(v, value(hn::Add(q, k)), sum);
  }

  // df/dq = df/dk = 1 if x is positive, otherwise 0
  static constexpr int kKeySign = 1;
  HWY_INLINE void differentiate(Vec<T> q, Vec<T> k, Vec<T> ds, Vec<T>& by_x, Vec<T>& vector) const {
    const auto x = hn::Add(q, k);
    by_x = hn::IfThenElseZero(hn::Gt(x, hn::Zero(Tag<T>())), ds);
    vector = hn::MulAdd(value(x), ds, vector);
  }
};

// f = max(x, slope x) with x = q + k and a slope above 0.
template <class T>
struct LeakyRectifierPair {
  static constexpr bool kHasVector = true;
  T slope;

  explicit LeakyRectifierPair(const Score<T>& score) : slope(T(score.negative_slope)) {}

  HWY_INLINE Vec<T> add(Vec<T> sum, Vec<T> q, Vec<T> k, Vec<T> v) const {
    const auto x = hn::Add(q, k);
    return hn::MulAdd(v, hn::Max(x, hn::Mul(x, Set<T>(slope))), sum);
  }

  // df/dq = df/dk = 1 if x is positive, otherwise the slope; f = x df/dx
  static constexpr int kKeySign = 1;
  HWY_INLINE void differentiate(Vec<T> q, Vec<T> k, Vec<T> ds, Vec<T>& by_x, Vec<T>& vector) const {
    const auto x = hn::Add(q, k);
    by_x = hn::IfThenElse(hn::Gt(x, hn::Zero(Tag<T>())), ds, hn::Mul(ds, Set<T>(slope)));
    vector = hn::MulAdd(x, by_x, vector);
  }
};

// f = 1 - magnitude / (1 + e^(2 rate x)) with x = q + k, with an exponential per pair: as (e^(2
// rate x) + 1 - magnitude) / (e^(2 rate x) + 1), which tanh needs near 0.
template <class T>
struct ExponentialPair {
  static constexpr bool kHasVector = true;
  T rate, magnitude;

  explicit ExponentialPair(const Score<T>& score)
      : rate(T(activation_rate(score.activation))),
        magnitude(T(activation_magnitude(score.activation))) {}

  // The numerator; the denominator is larger by `magnitude`.
  HWY_INLINE Vec<T> numerator(Vec<T> q, Vec<T> k) const {
    const auto x = hn::Mul(hn::Add(q, k), Set<T>(rate));
    return ExpOfTwice<T>(Clamp<T>(x, AdditiveLimits<T>::kAlone), Set<T>(magnitude - 1));
  }

  HWY_INLINE Vec<T> value(Vec<T> q, Vec<T> k) const {
    const auto n = numerator(q, k);
    return hn::Div(n, hn::Add(n, Set<T>(magnitude)));
  }

  HWY_INLINE Vec<T> add(Vec<T> sum, Vec<T> q, Vec<T> k, Vec<T> v) const {
    return hn::MulAdd(v, value(q, k), sum);
  }

  // df/dq = df/dk = 2 rate magnitude r (1 - r) with r = 1 / (1 + e^(2 rate x)); f = n r
  static constexpr int kKeySign = 1;
  HWY_INLINE void differentiate(Vec<T> q, Vec<T> k, Vec<T> ds, Vec<T>& slope,
                                Vec<T>& vector) const {
    const auto n = numerator(q, k), r = hn::Div(Set<T>(1), hn::Add(n, Set<T>(magnitude)));
    slope = hn::Mul(hn::Mul(ds, Set<T>(2 * rate * magnitude)), hn::NegMulAdd(r, r, r));
    vector = hn::MulAdd(ds, hn::Mul(n, r), vector);
  }
};

template <class T, class Pair>
class PairScores : public TileScores<T> {
 public:
  explicit PairScores(const Problem<T>& problem) : problem_(problem), pair_(problem.score) {}

  int64_t panel_size(int64_t width) const override { return problem_.shape.depth * width; }

  void load_queries(const Row& first, int64_t rows, int64_t width, T* panel) const override {
    LoadPanel(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
              rows, problem_.shape.depth, panel, width);
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const override {
    const int64_t stride = problem_.key.row_stride;
    const T* key = problem_.key.row(first.batch, KeyHead(problem_.shape, first.head), first_key);
    const T* vector = Pair::kHasVector ? HeadVector(problem_, first.head) : nullptr;
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      int64_t j = 0;
      for (; j + kStep <= keys; j += kStep)
        step<kStep>(key + j * stride, vector, panel + lane, width, tile + j * width + lane);
      for (; j < keys; ++j)
        step<1>(key + j * stride, vector, panel + lane, width, tile + j * width + lane);
    }
  }

 private:
  // Keys per step: enough independent sums to hide the latency of an addition on two ports.
  static constexpr int kStep = 8;

  template <int kKeys>
  HWY_NOINLINE void step(const T* HWY_RESTRICT key, const T* HWY_RESTRICT vector,
                         const T* HWY_RESTRICT panel, int64_t width, T* HWY_RESTRICT to) const {
    const Tag<T> d;
    const int64_t depth = problem_.shape.depth, stride = problem_.key.row_stride;
    const Pair pair = pair_;
    Vec<T> sum[kKeys];
    for (auto& s : sum) s = hn::Zero(d);
    for (int64_t a = 0; a < depth; ++a) {
      const auto q = hn::Load(d, panel + a * width);
      const auto v = Pair::kHasVector ? Set<T>(vector[a]) : hn::Zero(d);
#pragma GCC unroll 8
      for (int j = 0; j < kKeys; ++j) sum[j] = pair.add(sum[j], q, Set<T>(key[j * stride + a]), v);
    }
    const auto scale = Set<T>(T(problem_.score.scale * score_unit(problem_.normaliser)));
#pragma GCC unroll 8
    for (int j = 0; j < kKeys; ++j) hn::Store(hn::Mul(sum[j], scale), d, to + j * width);
  }

  const Problem<T>& problem_;
  Pair pair_;
};

// ds_ij gives dq_ia = scale v_a sum_j ds_ij df/dq, likewise dk, and dv_a = scale sum_ij ds_ij f. A
// vector holds several dimensions of one query and key, which makes every sum vertical.
template <class T, class Pair>
class PairGradients : public TileGradients<T> {
 public:
  PairGradients(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        pair_(problem_.score),
        depth_(problem_.shape.depth),
        padded_(RoundUpToLanes<T>(depth_)),
        task_(task),
        rows_(arena.take(padded_ * kBackwardRows)),
        keys_(arena.take(padded_ * kTileKeys)),
        query_sum_(arena.take(padded_ * kBackwardRows)),
        key_sum_(arena.take(padded_ * plan.chunk_keys)),
        key_gradient_(arena.take(padded_ * plan.chunk_keys)),
        vector_sum_(arena.take(padded_)) {
    std::fill_n(key_gradient_, padded_ * plan_.chunk_keys, T(0));
  }

  void begin_head(int64_t, int64_t) override {
    std::fill_n(key_sum_, padded_ * plan_.chunk_keys, T(0));
    std::fill_n(vector_sum_, padded_, T(0));
  }

  void load_queries(const Row& first, int64_t rows, int64_t width, const T*) override {
    first_ = first;
    query_count_ = rows;
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth_, width, rows_, padded_);
    std::fill_n(query_sum_, padded_ * width, T(0));
  }

  void add(const T* tile, int64_t first_key, int64_t chunk_key, int64_t keys,
           int64_t width) override {
    const int64_t head = KeyHead(problem_.shape, first_.head);
    LoadRows(problem_.key.row(first_.batch, head, first_key), problem_.key.row_stride, keys, depth_,
             keys, keys_, padded_);
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      int64_t j = 0;
      for (; j + kStep <= keys; j += kStep)
        add_step<kStep>(a, j, chunk_key + j, width, tile + j * width);
      for (; j < keys; ++j) add_step<1>(a, j, chunk_key + j, width, tile + j * width);
    }
  }

  void store_query_gradient(int64_t rows, int64_t, const View<T>& to) override {
    for (int64_t r = 0; r < rows; ++r) {
      T* gradient = to.row(first_.batch, first_.head, first_.query + r);
      for (int64_t a = 0; a < depth_; ++a)
        gradient[a] = factor(first_.head, a) * query_sum_[r * padded_ + a];
    }
  }

  void end_head(int64_t head, int64_t, int64_t keys) override {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t a = 0; a < depth_; ++a)
        key_gradient_[j * padded_ + a] += factor(head, a) * key_sum_[j * padded_ + a];
    }
    if constexpr (Pair::kHasVector) {
      const int64_t batch = task_ / plan_.chunks / problem_.shape.key_heads;
      const int64_t chunk = batch * plan_.chunks + task_ % plan_.chunks;
      T* vector = plan_.partial_vector + (chunk * problem_.shape.heads + head) * depth_;
      for (int64_t a = 0; a < depth_; ++a) vector[a] = T(problem_.score.scale) * vector_sum_[a];
    }
  }

  void store_key_gradient(int64_t chunk_key, T* to) const override {
    std::copy_n(key_gradient_ + chunk_key * padded_, depth_, to);
  }

 private:
  // Keys per step, each with itself and its sum in registers.
  static constexpr int kStep = 4;

  T factor(int64_t head, int64_t a) const {
    const T scale = T(problem_.score.scale);
    return Pair::kHasVector ? scale * HeadVector(problem_, head)[a] : scale;
  }

  template <int kCount>
  HWY_NOINLINE void add_step(int64_t a, int64_t first_key, int64_t chunk_key, int64_t width,
                             const T* HWY_RESTRICT tile) {
    const Tag<T> d;
    const int64_t padded = padded_;
    const Pair pair = pair_;
    T* HWY_RESTRICT key_sum = key_sum_ + chunk_key * padded + a;
    const T* HWY_RESTRICT query = rows_ + a;
    T* HWY_RESTRICT query_sum = query_sum_ + a;
    Vec<T> sum[kCount], key[kCount];
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      key[n] = hn::Load(d, keys_ + (first_key + n) * padded + a);
      sum[n] = hn::Load(d, key_sum + n * padded);
    }
    auto vector_sum = hn::Load(d, vector_sum_ + a);
    for (int64_t i = 0; i < query_count_; ++i) {
      const auto q = hn::Load(d, query + i * padded);
      auto row = hn::Load(d, query_sum + i * padded);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) {
        const auto ds = Set<T>(tile[n * width + i]);
        Vec<T> slope;
        pair.differentiate(q, key[n], ds, slope, vector_sum);
        row = hn::Add(row, slope);
        sum[n] = Pair::kKeySign > 0 ? hn::Add(sum[n], slope) : hn::Sub(sum[n], slope);
      }
      hn::Store(row, d, query_sum + i * padded);
    }
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) hn::Store(sum[n], d, key_sum + n * padded);
    hn::Store(vector_sum, d, vector_sum_ + a);
  }

  const BackwardPlan<T>& plan_;
  const Problem<T>& problem_;
  Pair pair_;
  int64_t depth_, padded_, task_;
  Row first_;
  int64_t query_count_ = 0;
  T* rows_;          // [width][padded] queries
  T* keys_;          // [keys][padded]
  T* query_sum_;     // [width][padded] sum_j ds_ij df/dq
  T* key_sum_;       // [chunk_keys][padded] sum_i ds_ij df/dk of the head
  T* key_gradient_;  // [chunk_keys][padded]
  T* vector_sum_;    // [padded] sum_ij ds_ij f
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
