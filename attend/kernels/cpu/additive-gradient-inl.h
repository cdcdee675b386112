#if defined(ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#undef ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#else
#define ATTEND_KERNELS_ADDITIVE_GRADIENT_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/additive-inl.h"
#include "attend/kernels/cpu/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Gradients of the additive family. A vector holds several dimensions of one query and key, which
// makes every sum vertical. With A = e^(2(q - c)) and G = e^(2(k + c)), f = 1 - magnitude r, r = 1
// / (1 + A G), and f' = 2 rate magnitude r (1 - r). With t = ds r and u = t - t r: dq_i = 2 rate
// magnitude scale v sum_j u, dk_j = 2 rate magnitude scale v sum_i u, dv = scale sum_ij (ds -
// magnitude t).
//
// Around 0 this difference would cancel; with n = A G - 1, computed from A - 1 and G - 1, f = 1 -
// magnitude / 2 + magnitude / 2 n r. For hard vectors the ranges are too wide for A and G: they use
// e^(2(q + k)) per pair.
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
        query_(arena.take(padded_ * kBackwardRows)),
        query_sum_(arena.take(padded_ * kBackwardRows)),
        key_sum_(arena.take(padded_ * plan.chunk_keys)),
        key_gradient_(arena.take(padded_ * plan.chunk_keys)) {
    std::fill_n(key_gradient_, padded_ * plan.chunk_keys, T(0));
  }

  void begin_head(int64_t batch, int64_t head) override {
    head_ = batch * problem_.shape.heads + head;
    total_ = 0;
    std::fill_n(std::copy_n(HeadVector(problem_, head), depth_, by_slope_), padded_ - depth_, T(0));
    ScaleInPlace(by_slope_, padded_, 2 * rate_ * magnitude_ * T(problem_.score.scale));
    std::fill_n(vector_sum_, padded_, T(0));
    std::fill_n(key_sum_, padded_ * plan_.chunk_keys, T(0));
  }

  // A less the base, or q for hard vectors, in rows [width][padded].
  void load_queries(const Row& first, int64_t rows, int64_t width, const T*) override {
    const Tag<T> d;
    first_ = first;
    query_count_ = rows;
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth_, width, query_, padded_);
    ScaleInPlace(query_, width * padded_, rate_);
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      if (is_hard(a)) continue;
      const auto centre = hn::Load(d, plan_.natural.centre + head_ * padded_ + a);
      for (int64_t offset = a; offset < width * padded_; offset += padded_) {
        const auto x =
            Clamp<T>(hn::Sub(hn::Load(d, query_ + offset), centre), AdditiveLimits<T>::kClamp);
        hn::Store(ExpOfTwice<T>(x, base(a)), d, query_ + offset);
      }
    }
    std::fill_n(query_sum_, padded_ * width, T(0));
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
    const int64_t offset = (head_ * problem_.shape.keys + first_key) * padded_;
    // For floats a reciprocal is cheap, and the ports for additions are busier: sharing reciprocals
    // only pays off for divisions in double.
    const bool shared = std::is_same_v<T, double> && plan_.natural.ends[head_ * 4] != 0;
    for (int64_t a = 0; a < padded_; a += kLanes<T>) {
      if (is_hard(a)) {
        add_keys<Form::hard>(a, chunk_key, keys, width, offset + a, tile);
      } else if (!hn::AllTrue(d, hn::Eq(base(a), hn::Zero(d)))) {
        add_keys<Form::around>(a, chunk_key, keys, width, offset + a, tile);
      } else if (shared) {
        add_keys<Form::shared>(a, chunk_key, keys, width, offset + a, tile);
      } else {
        add_keys<Form::single>(a, chunk_key, keys, width, offset + a, tile);
      }
    }
  }

  void store_query_gradient(int64_t rows, int64_t, const View<T>& to) override {
    for (int64_t r = 0; r < rows; ++r) {
      T* gradient = to.row(first_.batch, first_.head, first_.query + r);
      for (int64_t a = 0; a < depth_; ++a) gradient[a] = by_slope_[a] * query_sum_[r * padded_ + a];
    }
  }

  // Adds the head's share to the gradients of its keys, and writes its share of dv.
  void end_head(int64_t head, int64_t, int64_t keys) override {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t a = 0; a < depth_; ++a)
        key_gradient_[j * padded_ + a] += by_slope_[a] * key_sum_[j * padded_ + a];
    }
    T* vector = plan_.partial_vector + (vector_chunk() * problem_.shape.heads + head) * depth_;
    const T scale = T(problem_.score.scale), half = magnitude_ / 2;
    for (int64_t a = 0; a < depth_; ++a) {
      const bool around = plan_.natural.base[head_ * padded_ + a] != 0;
      vector[a] = scale * (around ? (1 - half) * total_ + half * vector_sum_[a]
                                  : total_ - magnitude_ * vector_sum_[a]);
    }
  }

  void store_key_gradient(int64_t chunk_key, T* to) const override {
    std::copy_n(key_gradient_ + chunk_key * padded_, depth_, to);
  }

 private:
  // Keys per step: each has two or three vectors in registers, the query three.
  static constexpr int kStep = kRowsPerStep == 8 ? 4 : 2;

  bool is_hard(int64_t a) const { return plan_.natural.plain[head_ * padded_ + a] != 0; }
  Vec<T> base(int64_t a) const {
    return hn::Load(Tag<T>(), plan_.natural.base + head_ * padded_ + a);
  }
  int64_t vector_chunk() const {
    return task_ / plan_.chunks / problem_.shape.key_heads * plan_.chunks + task_ % plan_.chunks;
  }

  // Vectors of dimensions: keys share reciprocals, keys do not share them, some dimensions are
  // around 0, or exponentials are computed per pair.
  enum class Form { shared, single, around, hard };

  // Replaces the denominators 1 + A G by their reciprocals, in place.
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
      for (int n = 0; n < kCount; ++n) sum[n] = Reciprocal<T>(sum[n]);
    }
  }

  // Adds one vector of dimensions from `a` on, for all keys of the tile, prepared from `offset` on.
  template <Form kForm>
  void add_keys(int64_t a, int64_t chunk_key, int64_t keys, int64_t width, int64_t offset,
                const T* tile) {
    int64_t j = 0;
    for (; j + kStep <= keys; j += kStep)
      add_step<kStep, kForm>(a, chunk_key + j, width, offset + j * padded_, tile + j * width);
    for (; j < keys; ++j)
      add_step<1, kForm>(a, chunk_key + j, width, offset + j * padded_, tile + j * width);
  }

  // Adds one vector of dimensions from `a` on, for kCount keys from chunk_key on and every query of
  // the block.
  template <int kCount, Form kForm>
  HWY_NOINLINE void add_step(int64_t a, int64_t chunk_key, int64_t width, int64_t offset,
                             const T* HWY_RESTRICT tile) {
    const Tag<T> d;
    constexpr bool kHard = kForm == Form::hard, kAround = kHard || kForm == Form::around;
    const int64_t padded = padded_;
    const T* HWY_RESTRICT factor = plan_.natural.factor + offset;
    T* HWY_RESTRICT key_sum = key_sum_ + chunk_key * padded + a;
    const T* HWY_RESTRICT query = query_ + a;
    T* HWY_RESTRICT query_sum = query_sum_ + a;
    const auto one = Set<T>(1), more = hn::Add(base(a), one);
    const auto near_zero = hn::Ne(base(a), hn::Zero(d));
    Vec<T> sum[kCount], key[kCount], rest[kCount];
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) {
      key[n] = hn::Load(d, factor + n * padded);
      rest[n] = kAround ? hn::Load(d, plan_.natural.weight + offset + n * padded) : one;
      sum[n] = hn::Load(d, key_sum + n * padded);
    }
    auto vector = hn::Zero(d);
    for (int64_t i = 0; i < query_count_; ++i) {
      const auto from = hn::Load(d, query + i * padded);
      auto row = hn::Load(d, query_sum + i * padded);
      Vec<T> by[kCount], r[kCount];
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) {
        const auto product =
            kHard ? power(hn::Add(from, key[n]), base(a)) : hn::MulAdd(from, key[n], rest[n]);
        by[n] = hn::IfThenElse(near_zero, product, one);
        r[n] = kAround ? hn::Add(product, more) : product;
      }
      invert<kForm, kCount>(r);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) {
        const auto t = hn::Mul(r[n], Set<T>(tile[n * width + i]));
        const auto u = hn::NegMulAdd(t, r[n], t);
        vector = kAround ? hn::MulAdd(t, by[n], vector) : hn::Add(t, vector);
        sum[n] = hn::Add(sum[n], u);
        row = hn::Add(row, u);
      }
      hn::Store(row, d, query_sum + i * padded);
    }
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) hn::Store(sum[n], d, key_sum + n * padded);
    hn::Store(hn::Add(hn::Load(d, vector_sum_ + a), vector), d, vector_sum_ + a);
  }

  static HWY_INLINE Vec<T> power(Vec<T> x, Vec<T> less) {
    return ExpOfTwice<T>(Clamp<T>(x, AdditiveLimits<T>::kAlone), less);
  }

  const BackwardPlan<T>& plan_;
  const Problem<T>& problem_;
  int64_t depth_, padded_, task_;
  T rate_, magnitude_;
  int64_t head_ = 0;
  Row first_;
  int64_t query_count_ = 0;
  T total_ = 0;      // sum of ds over the head's tiles
  T* by_slope_;      // [padded] 2 rate magnitude scale v
  T* vector_sum_;    // [padded] sum_ij t, or t n around 0
  T* query_;         // [width][padded] A, A - 1 around 0
  T* query_sum_;     // [width][padded] sum_j u
  T* key_sum_;       // [chunk_keys][padded] sum_i u
  T* key_gradient_;  // [chunk_keys][padded]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
