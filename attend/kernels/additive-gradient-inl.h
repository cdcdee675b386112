#if defined(ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#undef ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#else
#define ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/additive-inl.h"
#include "attend/kernels/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Gradients of the additive family. A vector holds as many dimensions of one query and key, so that
// every sum is vertical. With y = 1 / (A + E), tanh = 1 - 2 E y and tanh' = 4 A y E y (of the
// logistic function the numbers are 1 and 1). Since E y = 1 - A y, the sums that every gradient
// needs are those of t = ds y and u = t y alone:
//   dq_i = 4 scale v A_i (sum_j t - A_i sum_j u)      dk_j = 4 scale v E_j (sum_i t - E_j sum_i u)
//   dv = scale sum_ij ds (A - E) y = scale (sum_i A_i sum_j t - sum_j E_j sum_i t)
// Near 0 A - E keeps the digits of A - 1 and E - 1.
// A hard vector has r = 1 / (1 + e^(2(q + k))) for y and g = ds r (1 - r) for u:
//   dq_i = 4 scale v sum_j g                          dk_j = 4 scale v sum_i g
template <class T>
class AdditiveGradients : public TileGradients<T> {
 public:
  AdditiveGradients(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        depth_(problem_.shape.depth),
        padded_(plan.natural.padded),
        task_(task),
        rate_(T(activation_rate(problem_.score.activation))),
        magnitude_(T(activation_magnitude(problem_.score.activation))),
        by_slope_(arena.take(padded_)),
        vector_sum_(arena.take(padded_)),
        factor_(arena.take(padded_ * kBackwardRows)),
        rest_(arena.take(padded_ * kBackwardRows)),
        query_t_(arena.take(padded_ * kBackwardRows)),
        query_u_(arena.take(padded_ * kBackwardRows)),
        key_t_(arena.take(padded_ * plan.chunk_keys)),
        key_u_(arena.take(padded_ * plan.chunk_keys)),
        key_gradient_(arena.take(padded_ * plan.chunk_keys)) {
    std::fill_n(key_gradient_, padded_ * plan.chunk_keys, T(0));
  }

  void begin_head(int64_t batch, int64_t head) override {
    head_ = batch * problem_.shape.heads + head;
    total_ = 0;
    // f' is 2 rate magnitude times what it is a multiple of.
    std::fill_n(std::copy_n(HeadVector(problem_, head), depth_, by_slope_), padded_ - depth_, T(0));
    ScaleInPlace(by_slope_, padded_, 2 * rate_ * magnitude_ * T(problem_.score.scale));
    std::fill_n(vector_sum_, padded_, T(0));
    std::fill_n(key_t_, padded_ * plan_.chunk_keys, T(0));
    std::fill_n(key_u_, padded_ * plan_.chunk_keys, T(0));
  }

  // A (q itself in hard vectors) in rows [width][padded].
  void load_queries(const Row& first, int64_t rows, int64_t width, const T*) override {
    const Tag<T> d;
    first_ = first;
    query_count_ = rows;
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth_, width, factor_, padded_);
    ScaleInPlace(factor_, width * padded_, rate_);
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      if (is_hard(a)) continue;
      const auto centre = hn::Load(d, plan_.natural.centre + head_ * padded_ + a);
      const auto base = hn::Load(d, plan_.natural.base + head_ * padded_ + a);
      for (int64_t at = a; at < width * padded_; at += padded_) {
        const auto x = hn::Sub(hn::Load(d, factor_ + at), centre);
        const auto less = ExpOfTwice<T>(Clamp<T>(x, AdditiveLimits<T>::kClamp), base);
        hn::Store(less, d, rest_ + at);
        hn::Store(hn::Add(less, base), d, factor_ + at);
      }
    }
    std::fill_n(query_t_, padded_ * width, T(0));
    std::fill_n(query_u_, padded_ * width, T(0));
  }

  // tile[j][i] = ds_ij
  void add(const T* tile, int64_t first_key, int64_t chunk_key, int64_t keys,
           int64_t width) override {
    const Tag<T> d;
    auto total = hn::Zero(d);
    for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
      total = hn::Add(total, hn::Load(d, tile + i));
    }
    total_ += hn::GetLane(hn::SumOfLanes(d, total));
    const T* factor = plan_.natural.factor + (head_ * problem_.shape.keys + first_key) * padded_;
    // A float's reciprocal is cheap and the ports of the additions are the busier ones: sharing
    // pays for divisions alone.
    const bool shared = std::is_same_v<T, double> && plan_.natural.ends[head_ * 4] != 0;
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      const T* from = factor + a;
      if (is_hard(a)) {
        add_keys<Form::hard>(a, chunk_key, keys, width, from, tile);
      } else if (shared) {
        add_keys<Form::shared>(a, chunk_key, keys, width, from, tile);
      } else {
        add_keys<Form::single>(a, chunk_key, keys, width, from, tile);
      }
    }
  }

  void store_query_gradient(int64_t rows, int64_t, const View<T>& to) override {
    const Tag<T> d;
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      const bool hard = is_hard(a);
      const auto by_slope = hn::Load(d, by_slope_ + a);
      auto sum = hn::Load(d, vector_sum_ + a);
      for (int64_t at = a; at < rows * padded_; at += padded_) {
        const auto t = hn::Load(d, query_t_ + at), u = hn::Load(d, query_u_ + at);
        hn::Store(hn::Mul(by_slope, hard ? u : slope(hn::Load(d, factor_ + at), t, u)), d,
                  query_u_ + at);
        if (!hard) sum = hn::MulAdd(hn::Load(d, rest_ + at), t, sum);
      }
      hn::Store(sum, d, vector_sum_ + a);
    }
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(query_u_ + r * padded_, depth_,
                  to.row(first_.batch, first_.head, first_.query + r));
    }
  }

  // The head's share of its keys' gradients, and of dv.
  void end_head(int64_t head, int64_t first_key, int64_t keys) override {
    const Tag<T> d;
    const int64_t first = (head_ * problem_.shape.keys + first_key) * padded_;
    T* vector = plan_.partial_vector + (vector_chunk() * problem_.shape.heads + head) * depth_;
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      const bool hard = is_hard(a);
      const auto by_slope = hn::Load(d, by_slope_ + a);
      auto sum = hn::Load(d, vector_sum_ + a);
      for (int64_t at = a; at < keys * padded_; at += padded_) {
        const auto t = hn::Load(d, key_t_ + at), u = hn::Load(d, key_u_ + at);
        const auto e = hn::Load(d, plan_.natural.factor + first + at);
        const auto rest = hn::Load(d, plan_.natural.weight + first + at);
        // a key that no row sees may be NaN
        const auto seen = hn::Or(hn::Ne(t, hn::Zero(d)), hn::Ne(u, hn::Zero(d)));
        const auto by_key = hn::IfThenElseZero(seen, hard ? u : slope(e, t, u));
        hn::Store(hn::MulAdd(by_slope, by_key, hn::Load(d, key_gradient_ + at)), d,
                  key_gradient_ + at);
        sum = hn::Sub(sum, hn::IfThenElseZero(seen, hard ? t : hn::Mul(rest, t)));
      }
      hn::Store(sum, d, vector_sum_ + a);
    }
    // f = 1 - magnitude r, or 1 - magnitude / 2 + magnitude / 2 (A - E) y
    const T scale = T(problem_.score.scale);
    for (int64_t a = 0; a < depth_; ++a) {
      const T part = is_hard(a) ? magnitude_ : magnitude_ / 2;
      const T whole = is_hard(a) ? T(1) : 1 - magnitude_ / 2;
      vector[a] = scale * (whole * total_ + part * vector_sum_[a]);
    }
  }

  void store_key_gradient(int64_t chunk_key, T* to) const override {
    std::copy_n(key_gradient_ + chunk_key * padded_, depth_, to);
  }

 private:
  static HWY_INLINE Vec<T> slope(Vec<T> factor, Vec<T> t, Vec<T> u) {
    return hn::Mul(factor, hn::NegMulAdd(factor, u, t));
  }

  // Keys at a time: each has three vectors in registers, the query three.
  static constexpr int kStep = kRowsPerStep == 8 ? 4 : 2;

  bool is_hard(int64_t a) const { return plan_.natural.plain[head_ * padded_ + a] != 0; }
  int64_t vector_chunk() const {
    return task_ / plan_.chunks / problem_.shape.key_heads * plan_.chunks + task_ % plan_.chunks;
  }

  // A vector of dimensions whose keys share reciprocals, do not, or that takes exponentials.
  enum class Form { shared, single, hard };

  // sums to their reciprocals, in place
  template <Form kForm, int kCount>
  static HWY_INLINE void invert(Vec<T>* sum) {
    if constexpr (kForm == Form::shared && kCount == 4) {
      const auto low = hn::Mul(sum[0], sum[1]), high = hn::Mul(sum[2], sum[3]);
      const auto all = Reciprocal<T>(hn::Mul(low, high));
      const auto first = hn::Mul(all, high), second = hn::Mul(all, low);
      const auto a = hn::Mul(first, sum[1]), b = hn::Mul(second, sum[3]);
      sum[1] = hn::Mul(first, sum[0]);
      sum[3] = hn::Mul(second, sum[2]);
      sum[0] = a;
      sum[2] = b;
    } else if constexpr (kForm == Form::shared && kCount == 2) {
      const auto both = Reciprocal<T>(hn::Mul(sum[0], sum[1]));
      const auto a = hn::Mul(both, sum[1]);
      sum[1] = hn::Mul(both, sum[0]);
      sum[0] = a;
    } else {
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) sum[n] = ratio<kForm == Form::hard>(sum[n]);
    }
  }

  template <bool kHard>
  static HWY_INLINE Vec<T> ratio(Vec<T> sum) {
    if constexpr (!kHard) return Reciprocal<T>(sum);
    const auto power = ExpOfTwice<T>(Clamp<T>(sum, AdditiveLimits<T>::kClamp), hn::Zero(Tag<T>()));
    return hn::Div(Set<T>(1), hn::Add(Set<T>(1), power));
  }

  // One vector of dimensions, from a, of all keys of the tile.
  template <Form kForm>
  void add_keys(int64_t a, int64_t chunk_key, int64_t keys, int64_t width, const T* factor,
                const T* tile) {
    int64_t j = 0;
    for (; j + kStep <= keys; j += kStep)
      add_step<kStep, kForm>(a, chunk_key + j, width, factor + j * padded_, tile + j * width);
    for (; j < keys; ++j)
      add_step<1, kForm>(a, chunk_key + j, width, factor + j * padded_, tile + j * width);
  }

  // One vector of dimensions, from a, of kCount keys, from chunk_key, and every query of the block.
  template <int kCount, Form kForm>
  HWY_NOINLINE void add_step(int64_t a, int64_t chunk_key, int64_t width,
                             const T* HWY_RESTRICT factor, const T* HWY_RESTRICT tile) {
    const Tag<T> d;
    const int64_t padded = padded_;
    T* HWY_RESTRICT key_t = key_t_ + chunk_key * padded + a;
    T* HWY_RESTRICT key_u = key_u_ + chunk_key * padded + a;
    const T* HWY_RESTRICT query = factor_ + a;
    T* HWY_RESTRICT query_t = query_t_ + a;
    T* HWY_RESTRICT query_u = query_u_ + a;
    Vec<T> t_sum[kCount], u_sum[kCount], key[kCount];
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      key[n] = hn::Load(d, factor + n * padded);
      t_sum[n] = hn::Load(d, key_t + n * padded);
      u_sum[n] = hn::Load(d, key_u + n * padded);
    }
    for (int64_t i = 0; i < query_count_; ++i) {
      const auto from = hn::Load(d, query + i * padded);
      auto t_row = hn::Load(d, query_t + i * padded), u_row = hn::Load(d, query_u + i * padded);
      Vec<T> y[kCount];
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) y[n] = hn::Add(from, key[n]);
      invert<kForm, kCount>(y);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) {
        const auto t = hn::Mul(y[n], Set<T>(tile[n * width + i]));
        const auto u = kForm == Form::hard ? hn::NegMulAdd(t, y[n], t) : hn::Mul(t, y[n]);
        t_sum[n] = hn::Add(t_sum[n], t);
        u_sum[n] = hn::Add(u_sum[n], u);
        t_row = hn::Add(t_row, t);
        u_row = hn::Add(u_row, u);
      }
      hn::Store(t_row, d, query_t + i * padded);
      hn::Store(u_row, d, query_u + i * padded);
    }
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      hn::Store(t_sum[n], d, key_t + n * padded);
      hn::Store(u_sum[n], d, key_u + n * padded);
    }
  }

  const BackwardPlan<T>& plan_;
  const Problem<T>& problem_;
  int64_t depth_, padded_, task_;
  T rate_, magnitude_;
  int64_t head_ = 0;
  Row first_;
  int64_t query_count_ = 0;
  T total_ = 0;      // sum of ds over the head's tiles
  T* by_slope_;      // [padded] 4 scale v
  T* vector_sum_;    // [padded] sum_i (A_i - base) sum_j t
  T* factor_;        // [width][padded] A
  T* rest_;          // [width][padded] A - base
  T* query_t_;       // [width][padded] sum_j t
  T* query_u_;       // [width][padded] sum_j u
  T* key_t_;         // [chunk_keys][padded] sum_i t
  T* key_u_;         // [chunk_keys][padded] sum_i u
  T* key_gradient_;  // [chunk_keys][padded]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
