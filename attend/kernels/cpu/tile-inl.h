#if defined(ATTEND_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_TILE_INL_H_
#undef ATTEND_KERNELS_TILE_INL_H_
#else
#define ATTEND_KERNELS_TILE_INL_H_
#endif

#include <algorithm>
#include <utility>

#include "attend/kernels/cpu/bfloat16-inl.h"
#include "attend/kernels/cpu/bias-inl.h"
#include "attend/kernels/cpu/families-inl.h"
#include "attend/kernels/cpu/mask-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Consecutive queries of one head, as columns.
template <class T>
struct Panel {
  Row first;
  int64_t rows;
  int64_t width;  // rows rounded up to whole vectors
  BlockScope scope;
  T* queries;  // as loaded by the family
};

// cap tanh(s / cap); its derivative 1 - tanh^2 goes to cap_slope unless null.
template <class T>
void CapScores(T cap, int64_t count, T* tile, T* cap_slope) {
  const Tag<T> d;
  // tanh(x) = (e^(2x) - 1) / (e^(2x) + 1)
  constexpr T kFlat = sizeof(T) == 4 ? T(20) : T(40);
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    const auto x = Clamp<T>(hn::Mul(hn::Load(d, tile + i), Set<T>(1 / cap)), kFlat);
    const auto power = ExpOfTwice<T>(x, Set<T>(1));  // e^(2x) - 1
    const auto rest = hn::Div(Set<T>(2), hn::Add(power, Set<T>(2)));
    hn::Store(hn::Mul(hn::Mul(power, rest), Set<T>(cap / 2)), d, tile + i);
    if (cap_slope != nullptr) hn::Store(hn::Mul(rest, hn::Sub(Set<T>(2), rest)), d, cap_slope + i);
  }
}

// Computes the tiles for the normaliser: score, soft cap, bias, scope.
template <class T>
class TileScorer {
 public:
  // For panels of up to `width` queries. few: not null if there are few queries in all. bfloat16:
  // not null if products may use bf16.
  TileScorer(const Problem<T>& problem, const AdditivePlan<T>& additive, int64_t width,
             Arena<T>& arena, const HalfKeys* few = nullptr, const BFloat16Plan* bfloat16 = nullptr)
      : problem_(problem),
        scores_(few != nullptr ? MakeRowScores(problem, *few) : nullptr),
        bias_(problem, width, arena),
        cap_(T(problem.score.soft_cap * score_unit(problem.normaliser))) {
    if constexpr (std::is_same_v<T, float>) {
      if (bfloat16 != nullptr && bfloat16->kernels != nullptr)
        scores_ = std::make_unique<BFloat16DotScores>(problem, *bfloat16, width, arena);
    }
    if (scores_ == nullptr) scores_ = MakeScores(problem, additive, arena);
  }

  int64_t panel_size(int64_t width) const { return scores_->panel_size(width); }

  BlockScope scope(const Row& first, int64_t rows) const {
    return BlockScope(problem_.scope, first, rows, problem_.shape.keys);
  }

  // queries: room for panel_size numbers; scope: the scope of these rows.
  Panel<T> load(const Row& first, int64_t rows, BlockScope scope, T* queries) const {
    const int64_t width = RoundUpToLanes<T>(rows);
    scores_->load_queries(first, rows, width, queries);
    return {first, rows, width, std::move(scope), queries};
  }

  // As defer_scale of TileScores, if nothing is added to scores.
  T defer_scale() { return cap_ > 0 || bias_.present() ? T(1) : scores_->defer_scale(); }

  // Computes the scores of keys [key, key + keys) as tile[j][i], -inf outside the scope. Returns
  // false and writes nothing if all are outside. If scores are capped and cap_slope is not null,
  // cap_slope[j][i] is the derivative of the capped score by the score.
  bool score(const Panel<T>& panel, int64_t key, int64_t keys, T* tile, T* cap_slope = nullptr) {
    const Cover cover = panel.scope.cover(key, key + keys);
    if (cover == Cover::empty) return false;
    scores_->scores(panel.first, key, keys, panel.queries, panel.width, tile);
    if (cap_ > 0) CapScores(cap_, keys * panel.width, tile, cap_slope);
    bias_.add(panel.first, panel.rows, key, keys, panel.width, tile);
    if (cover == Cover::partial) MaskTile(panel.scope, panel.rows, key, keys, panel.width, tile);
    return true;
  }

  // Adds the keys and values of a tile that is scored soon: keys [begin, end); may be empty.
  void add_tile(const Row& first, int64_t begin, int64_t end, RowsAhead& ahead) const {
    const Shape& s = problem_.shape;
    const int64_t head = KeyHead(s, first.head);
    ahead.add(problem_.key.row(first.batch, head, begin), problem_.key.row_stride, end - begin,
              s.depth);
    ahead.add(problem_.value.row(first.batch, head, begin), problem_.value.row_stride, end - begin,
              s.value_depth);
  }

  // Rows to fetch during the products of scores.
  void set_ahead(RowsAhead* ahead) { scores_->set_ahead(ahead); }

  TileBias<T>& bias() { return bias_; }
  const TileScores<T>& scores() const { return *scores_; }

 private:
  const Problem<T>& problem_;
  std::unique_ptr<TileScores<T>> scores_;
  TileBias<T> bias_;
  T cap_;
};

// Scores of all keys of the panel's hull as tile[j][i].
template <class T>
void ScoreRows(TileScorer<T>& scorer, const Panel<T>& panel, T* tile) {
  const KeyRange hull = panel.scope.hull();
  for (int64_t key = hull.begin; key < hull.end; key += kTileKeys) {
    const int64_t keys = std::min(kTileKeys, hull.end - key);
    T* to = tile + (key - hull.begin) * panel.width;
    if (!scorer.score(panel, key, keys, to))
      std::fill_n(to, keys * panel.width, -std::numeric_limits<T>::infinity());
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
