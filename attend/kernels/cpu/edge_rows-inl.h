#if defined(ATTEND_KERNELS_EDGE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_EDGE_ROWS_INL_H_
#undef ATTEND_KERNELS_EDGE_ROWS_INL_H_
#else
#define ATTEND_KERNELS_EDGE_ROWS_INL_H_
#endif

#include <algorithm>
#include <memory>
#include <type_traits>

#include "attend/kernels/cpu/pair-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Rows at the other ends of the edges of one row; each is whole vectors.
template <class T>
struct Neighbours {
  const T* rows;
  int64_t stride;
  const int64_t* index;  // [known]; the first `count` belong to the row
  int64_t count, known;
  int64_t bytes;  // per row

  const T* row(int64_t n) const { return rows + index[n] * stride; }

  // Prefetches: a row may be anywhere in memory and is fetched while earlier ones are processed.
  // After the last row follow the rows of later queries or keys.
  HWY_INLINE void fetch_ahead(int64_t n) const {
    constexpr int64_t kAhead = 8, kLine = 64;
    if (n + kAhead >= known || bytes == 0) return;
    const auto* from = reinterpret_cast<const char*>(row(n + kAhead));
    for (int64_t line = 0; line < bytes; line += kLine) __builtin_prefetch(from + line);
  }
};

// f = q k, without v.
template <class T>
struct DotPair {
  static constexpr bool kHasVector = false;
  explicit DotPair(const Score<T>&) {}

  HWY_INLINE Vec<T> add(Vec<T> sum, Vec<T> q, Vec<T> k, Vec<T>) const {
    return hn::MulAdd(q, k, sum);
  }

  // df/dq = k
  HWY_INLINE void differentiate(Vec<T>, Vec<T> k, Vec<T> ds, Vec<T>& slope, Vec<T>&) const {
    slope = hn::Mul(ds, k);
  }
};

// f = -(q - k)^2, without v.
template <class T>
struct SquaredDistancePair {
  static constexpr bool kHasVector = false;
  explicit SquaredDistancePair(const Score<T>&) {}

  HWY_INLINE Vec<T> add(Vec<T> sum, Vec<T> q, Vec<T> k, Vec<T>) const {
    const auto away = hn::Sub(q, k);
    return hn::NegMulAdd(away, away, sum);
  }

  // df/dq = -2 (q - k)
  HWY_INLINE void differentiate(Vec<T> q, Vec<T> k, Vec<T> ds, Vec<T>& slope, Vec<T>&) const {
    slope = hn::Mul(hn::Mul(ds, Set<T>(-2)), hn::Sub(q, k));
  }
};

// A family along the edges of a row. Every f is symmetric in queries and keys: one function
// differentiates by either.
template <class T>
class EdgeScores {
 public:
  virtual ~EdgeScores() = default;

  // Sets the head, and with it the vector v.
  virtual void begin_head(int64_t head) = 0;

  // to[n * stride] = scale sum_a v_a f(own_a, other_na)
  virtual void score(const T* own, const Neighbours<T>& others, T* to, int64_t stride) const = 0;

  // sum_a += sum_n ds_n df/down, without v and scale. With v also vector_a += sum_n ds_n f. ds_n is
  // at ds[n * stride]. A dot product does not read `own`.
  virtual void differentiate(const T* own, const Neighbours<T>& others, const T* ds, int64_t stride,
                             T* sum, T* vector) const = 0;
};

template <class T, class Pair>
class PairEdges : public EdgeScores<T> {
 public:
  // Rows have `padded` numbers, whole vectors.
  PairEdges(const Problem<T>& problem, int64_t padded, T scale, Arena<T>& arena)
      : problem_(problem), pair_(problem.score), padded_(padded), scale_(scale) {
    if (!Pair::kHasVector) return;
    vector_ = arena.take(padded);
    std::fill_n(vector_, padded, T(0));
  }

  void begin_head(int64_t head) override {
    if (Pair::kHasVector) std::copy_n(HeadVector(problem_, head), problem_.shape.depth, vector_);
  }

  void score(const T* HWY_RESTRICT own, const Neighbours<T>& others, T* HWY_RESTRICT to,
             int64_t stride) const override {
    const Tag<T> d;
    const Pair pair = pair_;
    for (int64_t n = 0; n < others.count; ++n) {
      others.fetch_ahead(n);
      const T* HWY_RESTRICT other = padded_ == 0 ? nullptr : others.row(n);
      auto sum = hn::Zero(d);
      for (int64_t a = 0; a < padded_; a += kLanes<T>) {
        const auto v = Pair::kHasVector ? hn::LoadU(d, vector_ + a) : hn::Zero(d);
        sum = pair.add(sum, hn::LoadU(d, own + a), hn::LoadU(d, other + a), v);
      }
      to[n * stride] = scale_ * hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }

  void differentiate(const T* own, const Neighbours<T>& others, const T* ds, int64_t stride, T* sum,
                     T* vector) const override {
    int64_t a = 0;
    for (; a + kStep * kLanes<T> <= padded_; a += kStep * kLanes<T>)
      step<kStep>(a, own, others, ds, stride, sum, vector);
    for (; a < padded_; a += kLanes<T>) step<1>(a, own, others, ds, stride, sum, vector);
  }

 private:
  // Vectors of a row per step, with sums in registers.
  static constexpr int kStep = 4;
  static constexpr bool kReadsOwn = !std::is_same_v<Pair, DotPair<T>>;

  template <int kCount>
  HWY_NOINLINE void step(int64_t a, const T* HWY_RESTRICT own, const Neighbours<T>& others,
                         const T* HWY_RESTRICT ds, int64_t stride, T* HWY_RESTRICT sum,
                         T* HWY_RESTRICT vector) const {
    const Tag<T> d;
    const Pair pair = pair_;
    Vec<T> mine[kCount], total[kCount], by_vector[kCount];
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      mine[c] = kReadsOwn ? hn::LoadU(d, own + a + c * kLanes<T>) : hn::Zero(d);
      total[c] = hn::LoadU(d, sum + a + c * kLanes<T>);
      by_vector[c] = Pair::kHasVector ? hn::LoadU(d, vector + a + c * kLanes<T>) : hn::Zero(d);
    }
    for (int64_t n = 0; n < others.count; ++n) {
      others.fetch_ahead(n);
      const T* HWY_RESTRICT other = others.row(n) + a;
      const auto by_score = Set<T>(ds[n * stride]);
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) {
        Vec<T> slope;
        pair.differentiate(mine[c], hn::LoadU(d, other + c * kLanes<T>), by_score, slope,
                           by_vector[c]);
        total[c] = hn::Add(total[c], slope);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      hn::StoreU(total[c], d, sum + a + c * kLanes<T>);
      if (Pair::kHasVector) hn::StoreU(by_vector[c], d, vector + a + c * kLanes<T>);
    }
  }

  const Problem<T>& problem_;
  Pair pair_;
  int64_t padded_;
  T scale_;
  T* vector_ = nullptr;  // [padded] v of the head
};

// Factor of a gradient of `differentiate` in dimension a: scale v_a.
template <class T>
T EdgeFactor(const Problem<T>& problem, int64_t head, int64_t a) {
  const T scale = T(problem.score.scale);
  return problem.score.family == Family::additive ? scale * HeadVector(problem, head)[a] : scale;
}

// The families along edges.
template <class T>
std::unique_ptr<EdgeScores<T>> MakeEdgeScores(const Problem<T>& problem, Arena<T>& arena) {
  const int64_t padded = RoundUpToLanes<T>(problem.shape.depth);
  const T scale = T(problem.score.scale * score_unit(problem.normaliser));
  switch (problem.score.family) {
    case Family::dot:
      return std::make_unique<PairEdges<T, DotPair<T>>>(problem, padded, scale, arena);
    case Family::squared_distance:
      return std::make_unique<PairEdges<T, SquaredDistancePair<T>>>(problem, padded, scale, arena);
    case Family::absolute_distance:
      return std::make_unique<PairEdges<T, AbsoluteDistancePair<T>>>(problem, padded, scale, arena);
    case Family::additive:
      if (is_exponential(problem.score.activation))
        return std::make_unique<PairEdges<T, ExponentialPair<T>>>(problem, padded, scale, arena);
      if (is_leaky(problem.score))
        return std::make_unique<PairEdges<T, LeakyRectifierPair<T>>>(problem, padded, scale, arena);
      return std::make_unique<PairEdges<T, RectifierPair<T>>>(problem, padded, scale, arena);
  }
  return nullptr;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
