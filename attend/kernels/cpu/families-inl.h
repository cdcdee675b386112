#if defined(ATTEND_KERNELS_FAMILIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_FAMILIES_INL_H_
#undef ATTEND_KERNELS_FAMILIES_INL_H_
#else
#define ATTEND_KERNELS_FAMILIES_INL_H_
#endif

#include <memory>

#include "attend/kernels/cpu/additive-gradient-inl.h"
#include "attend/kernels/cpu/additive-inl.h"
#include "attend/kernels/cpu/additive-rows-inl.h"
#include "attend/kernels/cpu/distance-inl.h"
#include "attend/kernels/cpu/dot-inl.h"
#include "attend/kernels/cpu/pair-inl.h"
#include "attend/kernels/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Tables of families: scores and gradients of each.

template <class T>
std::unique_ptr<TileScores<T>> MakeScores(const Problem<T>& problem,
                                          const AdditivePlan<T>& additive, Arena<T>& arena) {
  switch (problem.score.family) {
    case Family::dot:
      return std::make_unique<DotScores<T>>(problem);
    case Family::squared_distance:
      return std::make_unique<SquaredDistanceScores<T>>(problem, arena);
    case Family::absolute_distance:
      return std::make_unique<PairScores<T, AbsoluteDistancePair<T>>>(problem);
    case Family::additive:
      if (is_exponential(problem.score.activation))
        return std::make_unique<AdditiveScores<T>>(problem, additive);
      if (is_leaky(problem.score))
        return std::make_unique<PairScores<T, LeakyRectifierPair<T>>>(problem);
      return std::make_unique<PairScores<T, RectifierPair<T>>>(problem);
  }
  return nullptr;
}

// Scores for few queries; null if the family has no such form.
template <class T>
std::unique_ptr<TileScores<T>> MakeRowScores(const Problem<T>& problem, const HalfKeys& half) {
  if (problem.score.family == Family::dot) return std::make_unique<DotRowScores<T>>(problem, half);
  if (is_prepared(problem.score)) return std::make_unique<AdditiveRowScores<T>>(problem);
  return nullptr;
}

// `scores`: result of MakeRowScores or MakeScores for the same problem.
template <class T>
std::unique_ptr<TileGradients<T>> MakeGradients(const BackwardPlan<T>& plan, int64_t task,
                                                const TileScores<T>& scores, Arena<T>& arena) {
  const Score<T>& score = plan.problem->score;
  switch (score.family) {
    case Family::dot:
      if constexpr (std::is_same_v<T, float>) {
        if (plan.bfloat16.kernels != nullptr)
          return std::make_unique<BFloat16DotGradients>(plan, arena);
      }
      return std::make_unique<DotGradients<T>>(plan, arena);
    case Family::squared_distance:
      return std::make_unique<SquaredDistanceGradients<T>>(
          plan, static_cast<const SquaredDistanceScores<T>&>(scores), arena);
    case Family::absolute_distance:
      return std::make_unique<PairGradients<T, AbsoluteDistancePair<T>>>(plan, task, arena);
    case Family::additive:
      if (is_leaky(score))
        return std::make_unique<PairGradients<T, LeakyRectifierPair<T>>>(plan, task, arena);
      if (!is_exponential(score.activation))
        return std::make_unique<PairGradients<T, RectifierPair<T>>>(plan, task, arena);
      if (few_queries(plan.problem->shape))
        return std::make_unique<PairGradients<T, ExponentialPair<T>>>(plan, task, arena);
      return std::make_unique<AdditiveGradients<T>>(plan, task, arena);
  }
  return nullptr;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
