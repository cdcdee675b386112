#if defined(ATTEND_KERNELS_ADDITIVE_PREPARE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ADDITIVE_PREPARE_INL_H_
#undef ATTEND_KERNELS_ADDITIVE_PREPARE_INL_H_
#else
#define ATTEND_KERNELS_ADDITIVE_PREPARE_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Limits of x in e^(2x). kAround: tanh is a short polynomial around 0. kUnit: e^(2x) is within a
// few times 1. kQuadruple and kPair: the product of four or two sums, and its numerator, are normal
// numbers. kShared: the product of four sums 1 + A G in backward is finite. kClamp: x is clamped to
// it, which keeps A G finite. kAlone: the same for e^(2x) by itself; its reciprocal, and with it
// the slope, is nearly 0. kOther: if one side is clamped, the other may reach this far without
// changing the last bit of the sum.
template <class T>
struct AdditiveLimits;
template <>
struct AdditiveLimits<float> {
  static constexpr float kAround = 0.08f, kUnit = 0.5f;
  static constexpr float kQuadruple = 9.5f, kPair = 19.0f, kClamp = 19.0f, kOther = 9.5f;
  static constexpr float kShared = 5.0f, kAlone = 43.0f;
};
template <>
struct AdditiveLimits<double> {
  static constexpr double kAround = 0.0625, kUnit = 0.5;
  static constexpr double kQuadruple = 80.0, kPair = 150.0, kClamp = 150.0, kOther = 125.0;
  static constexpr double kShared = 40.0, kAlone = 353.0;
};

// Range of the finite numbers of a dimension over rows, and whether any number is infinite.
template <class T>
struct DimensionRange {
  T low, high;
  bool infinite;
};

template <class T>
void FindRanges(const T* from, int64_t stride, int64_t rows, int64_t depth, Arena<T>& arena,
                DimensionRange<T>* ranges) {
  const Tag<T> d;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const int64_t padded = RoundUpToLanes<T>(depth);
  T* row = arena.take(padded);
  T* low = arena.take(padded);
  T* high = arena.take(padded);
  T* top = arena.take(padded);  // largest magnitudes, including infinities
  std::fill_n(row, padded, T(0));
  std::fill_n(low, padded, kInfinity);
  std::fill_n(high, padded, -kInfinity);
  std::fill_n(top, padded, T(0));
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * stride, depth, row);
    for (int64_t a = 0; a < padded; a += kLanes<T>) {
      const auto x = hn::Load(d, row + a), size = hn::Abs(x);
      const auto below = hn::Load(d, low + a), above = hn::Load(d, high + a);
      // Comparisons with NaN are false: NaN changes nothing.
      const auto finite = hn::Lt(size, Set<T>(kInfinity));
      hn::Store(hn::IfThenElse(hn::And(finite, hn::Lt(x, below)), x, below), d, low + a);
      hn::Store(hn::IfThenElse(hn::And(finite, hn::Gt(x, above)), x, above), d, high + a);
      hn::Store(MaxOrSecond<T>(size, hn::Load(d, top + a)), d, top + a);
    }
  }
  for (int64_t a = 0; a < depth; ++a) ranges[a] = {low[a], high[a], top[a] == kInfinity};
}

// Whether two sides of one sign clash: one is clamped while the other still counts.
template <class T>
bool IsHard(const DimensionRange<T>& query, const DimensionRange<T>& key, T centre) {
  using Limits = AdditiveLimits<T>;
  if (query.infinite || key.infinite) return true;
  const T q_high = query.high - centre, k_high = -key.low - centre;
  const T q_low = centre - query.low, k_low = centre + key.high;
  const auto clash = [](T a, T b) { return a > Limits::kClamp && b > Limits::kOther; };
  return clash(q_high, k_high) || clash(k_high, q_high) || clash(q_low, k_low) ||
         clash(k_low, q_low);
}

// Orders dimensions: four, two and one per reciprocal, around 0, then hard ones.
template <class T>
void OrderDimensions(const T* reach, int64_t depth, int64_t* order, int64_t* ends) {
  using Limits = AdditiveLimits<T>;
  std::vector<int64_t> around, fours, twos, ones, rest;
  for (int64_t a = 0; a < depth; ++a) {
    std::vector<int64_t>& kind = reach[a] <= Limits::kAround      ? around
                                 : reach[a] <= Limits::kQuadruple ? fours
                                 : reach[a] <= Limits::kPair      ? twos
                                 : std::isfinite(reach[a])        ? ones
                                                                  : rest;
    kind.push_back(a);
  }
  for (; fours.size() % 4 != 0; fours.pop_back()) twos.push_back(fours.back());
  for (; twos.size() % 2 != 0; twos.pop_back()) ones.push_back(twos.back());
  int64_t* to = std::copy(fours.begin(), fours.end(), order);
  ends[0] = to - order;
  to = std::copy(twos.begin(), twos.end(), to);
  ends[1] = to - order;
  to = std::copy(ones.begin(), ones.end(), to);
  ends[2] = to - order;
  to = std::copy(around.begin(), around.end(), to);
  ends[3] = to - order;
  std::copy(rest.begin(), rest.end(), to);
}

// Finds centres, kinds and order of the dimensions of one head.
template <class T>
void PrepareHead(const AdditivePlan<T>& plan, int64_t head, Arena<T>& arena) {
  const Problem<T>& problem = *plan.problem;
  const Shape& s = problem.shape;
  const int64_t b = head / s.heads, h = head % s.heads;
  std::vector<DimensionRange<T>> query(s.depth), key(s.depth);
  FindRanges(problem.query.row(b, h, 0), problem.query.row_stride, s.queries, s.depth, arena,
             query.data());
  FindRanges(problem.key.row(b, KeyHead(s, h), 0), problem.key.row_stride, s.keys, s.depth, arena,
             key.data());
  const T rate = T(activation_rate(problem.score.activation));
  for (int64_t a = 0; a < s.depth; ++a) {
    query[a] = {rate * query[a].low, rate * query[a].high, query[a].infinite};
    key[a] = {rate * key[a].low, rate * key[a].high, key[a].infinite};
  }
  T* centre = plan.centre + head * plan.padded;
  T* base = plan.base + head * plan.padded;
  int64_t* plain = plan.plain + head * plan.padded;
  int64_t* order = plan.order + head * plan.padded;
  T* reach = arena.take(s.depth);  // infinite if hard
  T constant = 0;
  const T* vector = HeadVector(problem, h);
  const T middle_value = T(1 - activation_magnitude(problem.score.activation) / 2);  // f(0)
  std::fill_n(centre, plan.padded, T(0));
  std::fill_n(base, plan.padded, T(0));
  std::fill_n(plain, plan.padded, int64_t{0});
  for (int64_t a = 0; a < s.depth; ++a) {
    // The form needs q - c and -k - c both near 0.
    const T high = std::max(query[a].high, -key[a].low), low = std::min(query[a].low, -key[a].high);
    const T middle = low + (high - low) / 2;
    centre[a] = std::isfinite(middle) ? middle : T(0);
    const bool hard = IsHard(query[a], key[a], centre[a]);
    reach[a] =
        hard ? std::numeric_limits<T>::infinity() : std::max(high - centre[a], centre[a] - low);
    const bool around = !plan.natural && reach[a] <= AdditiveLimits<T>::kAround;
    base[a] = plan.natural && reach[a] <= AdditiveLimits<T>::kUnit ? T(1) : T(0);
    plain[a] = hard || around;
    constant += around ? middle_value * vector[a] : vector[a];
  }
  for (int64_t a = 0; a < plan.padded; ++a) order[a] = a;
  plan.constant[head] = constant * T(problem.score.scale * score_unit(problem.normaliser));
  if (!plan.natural) return OrderDimensions(reach, s.depth, order, plan.ends + head * 4);
  // Gradients run along the depth: a vector is hard if any of its dimensions is. Keys share
  // reciprocals if every reach is at most kShared.
  plan.ends[head * 4] =
      std::all_of(reach, reach + s.depth, [](T x) { return x <= AdditiveLimits<T>::kShared; });
  for (int64_t a = 0; a < plan.padded; a += kLanes<T>) {
    const bool any =
        std::any_of(plain + a, plain + a + kLanes<T>, [](int64_t x) { return x != 0; });
    std::fill_n(plain + a, kLanes<T>, int64_t{any});
  }
}

// tanh(x) / x for sums of two sides around 0, divided by kLead; relative errors 3e-8 and 3e-17.
template <class T>
struct AroundZero;
template <>
struct AroundZero<float> {
  static constexpr double kLead = 0.131284885792;
  static HWY_INLINE Vec<float> slope(Vec<float> x) {
    const auto square = hn::MulAdd(x, x, Set<float>(-1.2694292f));
    return hn::MulAdd(square, square, Set<float>(6.0055723f));
  }
};
template <>
struct AroundZero<double> {
  static constexpr double kLead = 1;
  static constexpr double kCoefficients[] = {1.0,
                                             -0.33333333333321791851,
                                             0.13333333324711773348,
                                             -0.053968230403478569501,
                                             0.021866574731973611156,
                                             -0.0086968348414703372655};
  static HWY_INLINE Vec<double> slope(Vec<double> x) {
    return Polynomial<double>(hn::Mul(x, x), kCoefficients);
  }
};

// Properties of a head's dimensions for all its keys, in their order: the centre, the base, 1 if
// plain, and the factor of E in w (for plain dimensions w itself).
template <class T>
struct KeyPlaces {
  T *centre, *base, *plain, *weight;

  KeyPlaces(const AdditivePlan<T>& plan, int64_t head, Arena<T>& arena)
      : centre(arena.take(plan.padded)),
        base(arena.take(plan.padded)),
        plain(arena.take(plan.padded)),
        weight(arena.take(plan.padded)) {
    const Problem<T>& problem = *plan.problem;
    const int64_t depth = problem.shape.depth, offset = head * plan.padded;
    const int64_t* ends = plan.ends + head * 4;
    const T* vector = HeadVector(problem, head % problem.shape.heads);
    // f(x) = 1 - magnitude / (1 + e^(2 rate x)) = 1 - magnitude / 2 + magnitude / 2 tanh(rate x)
    const double by_ratio = -activation_magnitude(problem.score.activation) * problem.score.scale *
                            score_unit(problem.normaliser);
    const double by_slope = by_ratio / -2 * AroundZero<T>::kLead;
    for (int64_t p = 0; p < plan.padded; ++p) {
      const int64_t a = plan.order[offset + p];
      const bool around = !plan.natural && ends[2] <= p && p < ends[3];
      centre[p] = plan.centre[offset + a];
      base[p] = plan.base[offset + a];
      plain[p] = plan.plain[offset + a] != 0 ? T(1) : T(0);
      weight[p] = p < depth ? vector[a] * T(around ? by_slope : by_ratio) : T(0);
    }
  }
};

// Computes E and w for one block of keys of one head.
template <class T>
void PrepareKeys(const AdditivePlan<T>& plan, int64_t task, Arena<T>& arena) {
  const Problem<T>& problem = *plan.problem;
  const Shape& s = problem.shape;
  const int64_t head = task / plan.key_blocks(), first = task % plan.key_blocks() * kTileKeys;
  const int64_t* order = plan.order + head * plan.padded;
  const KeyPlaces<T> places(plan, head, arena);
  const Tag<T> d;
  const auto rate = Set<T>(T(activation_rate(problem.score.activation)));
  for (int64_t j = first; j < std::min(first + kTileKeys, s.keys); ++j) {
    const T* key = problem.key.row(head / s.heads, KeyHead(s, head % s.heads), j);
    T* e = plan.factor + (head * s.keys + j) * plan.padded;
    T* w = plan.weight + (head * s.keys + j) * plan.padded;
    for (int64_t p = 0; p < s.depth; ++p) e[p] = key[order[p]];
    std::fill(e + s.depth, e + plan.padded, T(0));
    for (int64_t p = 0; p < plan.padded; p += kLanes<T>) {
      const auto k = hn::Mul(hn::Load(d, e + p), rate), base = hn::Load(d, places.base + p);
      const auto x =
          Clamp<T>(hn::Add(k, hn::Load(d, places.centre + p)), AdditiveLimits<T>::kClamp);
      const auto rest = ExpOfTwice<T>(plan.natural ? x : hn::Neg(x), base);
      const auto factor = hn::Add(rest, base);
      const auto plain = hn::Ne(hn::Load(d, places.plain + p), hn::Zero(d));
      const auto weight = hn::Load(d, places.weight + p);
      hn::Store(hn::IfThenElse(plain, k, factor), d, e + p);
      hn::Store(plan.natural ? hn::Mul(base, rest)
                             : hn::IfThenElse(plain, weight, hn::Mul(weight, factor)),
                d, w + p);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
