#if defined(ATTEND_KERNELS_SHIFTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_SHIFTS_INL_H_
#undef ATTEND_KERNELS_SHIFTS_INL_H_
#else
#define ATTEND_KERNELS_SHIFTS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <utility>

#include "attend/kernels/cpu/online-inl.h"
#include "attend/kernels/cpu/sparse-inl.h"
#include "attend/kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Shifts of rows for backward and the weights. A moderate lse is a sufficient shift: its rounding
// matters no more than the rounding of the scores. Scores are recomputed for a large lse, and for
// the thresholds of sparse normalisers, which are near the largest score.

// Above this, a float lse of softmax in units of log4 has an error of up to 2^-15.
inline constexpr double kCoarseLse = 256;

// Finds the shifts of a sparse normaliser. `scores` has room for all keys of the panel; `index` is
// the index of the panel's first row.
template <class T>
void StoreSparseShifts(TileScorer<T>& scorer, const Panel<T>& panel,
                       const RowNormaliser<T>& normaliser, T* scores, int64_t index,
                       Arena<T>& arena, const RowShifts<T>& to) {
  const RowShifts<T> found{arena.take(panel.width), arena.take(panel.width)};
  const KeyRange hull = panel.scope.hull();
  ScoreRows(scorer, panel, scores);
  FindThresholds(normaliser, scores, std::max<int64_t>(0, hull.end - hull.begin), panel.width,
                 found);
  std::copy_n(found.reference, panel.rows, to.reference + index);
  std::copy_n(found.offset, panel.rows, to.offset + index);
}

// Shifts of softmax or softpick from the scores of all keys. The given lse may cover more keys, as
// after merge. It is used if it exceeds the lse of these keys by more than the rounding differences
// between panels.
template <class T>
void StoreOnlineShifts(const OnlineNormaliser<T>& online, const T* lse, int64_t index, int64_t rows,
                       const RowShifts<T>& to) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kRounding = 32 * std::numeric_limits<T>::epsilon();
  for (int64_t r = 0; r < rows; ++r) {
    const bool empty = online.sum[r] == 0;
    to.reference[index + r] = empty ? T(0) : online.reference[r];
    to.offset[index + r] = empty ? kInfinity : std::log2(online.divisor(r)) / 2;
    const T given = lse[index + r] * T(kLog4E), offset = given - to.reference[index + r];
    if (offset - to.offset[index + r] > kRounding * std::abs(given)) to.offset[index + r] = offset;
  }
}

// Finds the shifts of softmax or softpick from its scores.
template <class T>
void StoreSummedShifts(TileScorer<T>& scorer, const Panel<T>& panel, const Problem<T>& problem,
                       const T* lse, const BFloat16Plan& bfloat16, T* tile, int64_t index,
                       Arena<T>& arena, const RowShifts<T>& to) {
  const T* const sinks = problem.sinks;
  const OnlineNormaliser<T> online{
      {problem, panel.first.head}, arena.take(panel.width), arena.take(panel.width)};
  sinks == nullptr ? online.start(panel.width)
                   : online.start_with_sink(panel.width, sinks[panel.first.head] * T(kLog4E));
  const KeyRange hull = panel.scope.hull();
  for (int64_t key = hull.begin, next = 0; key < hull.end; key = next) {
    next = next_tile(bfloat16, key);
    const int64_t keys = std::min(next, hull.end) - key;
    if (scorer.score(panel, key, keys, tile)) online.update(tile, keys, panel.width, nullptr, 0);
  }
  StoreOnlineShifts(online, lse, index, panel.rows, to);
}

// Finds the shifts of softmax or softpick from the lse only; returns false if an lse is too coarse.
template <class T>
bool ConvertShifts(Normaliser normaliser, const T* lse, int64_t index, int64_t rows,
                   const RowShifts<T>& to) {
  const bool whole = normaliser == Normaliser::softpick;
  constexpr T kPlain = 16;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (int64_t r = index; r < index + rows; ++r) {
    const bool empty = lse[r] == -kInfinity;
    if (!empty && std::abs(lse[r]) > T(kCoarseLse)) return false;
    const T scaled = empty ? T(0) : lse[r] * T(kLog4E);
    // For softpick whole, and 0 if powers of the scores stay small: moved scores would be rounded.
    to.reference[r] = !whole ? scaled : scaled <= kPlain ? T(0) : std::round(scaled);
    to.offset[r] = empty ? kInfinity : scaled - to.reference[r];
  }
  return true;
}

// If the order of the keys matters, these numbers are -log4 of the rest of the stick after each
// tile of a panel. They are summed from the last key on. A difference of sums from the first key on
// would be rounded.
template <class T>
class TileEnds {
 public:
  // For up to `keys` keys and `width` rows.
  TileEnds(int64_t keys, int64_t width, Arena<T>& arena)
      : ends_(arena.take((keys / kTileKeys + 2) * width)), last_(arena.take(width)) {}

  // Keys [begin, end). `after` [width] holds the same number for the end, `tile` has room for the
  // scores of a tile.
  void find(TileScorer<T>& scorer, const Panel<T>& panel, int64_t begin, int64_t end,
            const BFloat16Plan& bfloat16, const T* after, T* tile) {
    width_ = panel.width;
    int64_t tiles = 0;
    for (int64_t key = begin, next = 0; key < end; key = next, ++tiles) {
      next = next_tile(bfloat16, key);
      const int64_t keys = std::min(next, end) - key;
      std::fill_n(at_tile(tiles), width_, T(0));
      if (scorer.score(panel, key, keys, tile)) AddGone(keys, width_, tile, at_tile(tiles));
    }
    std::copy_n(after, width_, last_);
    while (tiles-- > 0) {
      for (int64_t r = 0; r < width_; ++r) last_[r] += std::exchange(at_tile(tiles)[r], last_[r]);
    }
  }

  // [width], for the tile of this number.
  const T* after(int64_t tile) const { return ends_ + tile * width_; }

 private:
  T* at_tile(int64_t tile) { return ends_ + tile * width_; }

  T* ends_;  // [tiles][width]
  T* last_;  // [width]
  int64_t width_ = 0;
};

// For one block of the selected rows of one head.
template <class T>
void FindShifts(const SummaryPlan<T>& plan, int64_t task, Arena<T>& arena) {
  const Problem<T>& problem = *plan.problem;
  const Shape& s = problem.shape;
  const auto [batch, n, block] = plan.place(task);
  const int64_t begin = block * kBackwardRows;
  const int64_t rows = std::min(kBackwardRows, plan.selection.rows - begin);
  const Row first{batch, plan.head(n), plan.selection.first_row + begin};
  const int64_t index = (batch * s.heads + first.head) * s.queries + first.query;
  const bool sparse = is_sparse(problem.normaliser);
  if (!sparse && ConvertShifts(problem.normaliser, plan.lse, index, rows, plan.shifts)) return;
  const BFloat16Thread thread(plan.bfloat16.kernels);
  TileScorer<T> scorer(problem, plan.additive, kBackwardRows, arena, few_keys(s), &plan.bfloat16);
  const Panel<T> panel = scorer.load(first, rows, scorer.scope(first, rows),
                                     arena.take(scorer.panel_size(kBackwardRows)));
  T* scores = arena.take((sparse ? s.keys : kTileKeys) * kBackwardRows);
  sparse ? StoreSparseShifts(scorer, panel, RowNormaliser<T>(problem, first.head), scores, index,
                             arena, plan.shifts)
         : StoreSummedShifts(scorer, panel, problem, plan.lse, plan.bfloat16, scores, index, arena,
                             plan.shifts);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
