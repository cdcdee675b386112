#if defined(ATTEND_KERNELS_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_WEIGHTS_INL_H_
#undef ATTEND_KERNELS_WEIGHTS_INL_H_
#else
#define ATTEND_KERNELS_WEIGHTS_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/additive-inl.h"
#include "attend/kernels/bias-inl.h"
#include "attend/kernels/dot-inl.h"
#include "attend/kernels/mask-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// One block of rows of the weights of one head: p_ij = exp(s_ij - lse_i).
template <class T, class Scores>
void WeightsBlock(const WeightsPlan<T>& plan, int64_t task, Arena<T>& arena) {
  const Tag<T> d;
  const Problem<T>& problem = *plan.problem;
  const Shape& s = problem.shape;
  const int64_t head = task / plan.blocks(), begin = task % plan.blocks() * kBackwardRows;
  const int64_t rows = std::min(kBackwardRows, plan.rows - begin), width = RoundUpToLanes<T>(rows);
  const Row first{head / s.heads, head % s.heads, plan.first_row + begin};
  const BlockScope scope(problem.scope, first, rows, s.keys);
  const Scores scores(problem, plan.additive);
  TileBias<T> bias(problem, kBackwardRows, arena);
  T* panel = arena.take(scores.panel_size(kBackwardRows));
  T* tile = arena.take(kTileKeys * kBackwardRows);
  T* shift = arena.take(kBackwardRows);
  scores.load_queries(first, rows, width, panel);
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (int64_t r = 0; r < width; ++r) {
    const T lse = r < rows ? plan.lse[head * s.queries + first.query + r] : kInfinity;
    shift[r] = lse == -kInfinity ? kInfinity : lse * T(kLog2E);
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::fill_n(plan.weights.row(first.batch, first.head, begin + r), s.keys, T(0));
  }
  for (int64_t key = scope.hull().begin; key < scope.hull().end; key += kTileKeys) {
    const int64_t keys = std::min(kTileKeys, scope.hull().end - key);
    const Cover cover = scope.cover(key, key + keys);
    if (cover == Cover::empty) continue;
    scores.scores(first, key, keys, panel, width, tile);
    bias.add(first, rows, key, keys, width, tile);
    if (cover == Cover::partial) MaskTile(scope, rows, key, keys, width, tile);
    for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
      const auto x = hn::Sub(hn::Load(d, tile + i), hn::Load(d, shift + i % width));
      hn::Store(Exp2<T>(x), d, tile + i);
    }
    Transpose(tile, width, keys, rows, plan.weights.row(first.batch, first.head, begin) + key,
              plan.weights.row_stride);
  }
}

template <class T>
void Weights(const WeightsPlan<T>& plan, int64_t task, Arena<T>& arena) {
  switch (plan.problem->score.family) {
    case Family::dot:
      return WeightsBlock<T, DotScores<T>>(plan, task, arena);
    case Family::additive:
      return WeightsBlock<T, AdditiveScores<T>>(plan, task, arena);
    default:
      return;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
