#if defined(ATTEND_KERNELS_EDGE_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_EDGE_PANEL_INL_H_
#undef ATTEND_KERNELS_EDGE_PANEL_INL_H_
#else
#define ATTEND_KERNELS_EDGE_PANEL_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <memory>

#include "attend/kernels/cpu/edge_plan-inl.h"
#include "attend/kernels/cpu/edge_rows-inl.h"
#include "attend/kernels/cpu/shifts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// kWidth consecutive queries of one head, one per lane, and their edges. In a tile [edges][lanes],
// element [n][r] belongs to edge n of query r.
template <class T>
class EdgePanel {
 public:
  static constexpr int64_t kWidth = kLanes<T>;

  // For panels of the `rows` queries from `first` on.
  EdgePanel(const EdgePlan<T>& plan, const Row& first, int64_t rows, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        bias_(problem_),
        scores_(MakeEdgeScores(problem_, arena)),
        products_(problem_, RoundUpToLanes<T>(problem_.shape.value_depth), T(1), arena),
        unit_(T(score_unit(problem_.normaliser))),
        shifts_{arena.take(kWidth), arena.take(kWidth)} {
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; ++r)
      longest = std::max(longest, plan.edges({first.batch, first.head, first.query + r}).count);
    room_ = longest * kWidth;
    tile_ = arena.take(room_);
    scores_->begin_head(first.head);
  }

  // Numbers per tile.
  int64_t room() const { return room_; }

  void load(const Row& first, int64_t rows) {
    first_ = first;
    rows_ = rows;
    count_ = 0;
    for (int64_t r = 0; r < rows; ++r) {
      edges_[r] = plan_.edges(row(r));
      count_ = std::max(count_, edges_[r].count);
    }
  }

  // Writes scores in the unit of the normaliser to tile(), -inf without an edge; cap_slope as
  // in CapScores.
  void score(T* cap_slope = nullptr) {
    for (int64_t r = 0; r < rows_; ++r) scores_->score(query(r), keys(r), tile_ + r, kWidth);
    if (problem_.score.soft_cap > 0)
      CapScores(T(problem_.score.soft_cap) * unit_, count_ * kWidth, tile_, cap_slope);
    if (bias_.any()) {
      each_edge([&](int64_t r, int64_t key, int64_t number, int64_t place) {
        tile_[place] = bias_.add(tile_[place], row(r), key, number, unit_);
      });
    }
    mask();
  }

  // Finds the shifts of the rows from the scores in tile() and, if exact enough, from their lse;
  // `scratch` has room for a tile.
  void find_shifts(const T* lse, T* scratch) {
    const RowNormaliser<T> normaliser(problem_, first_.head);
    LoadShifts<T>({}, 0, 0, kWidth, shifts_);
    if (!needs_shifts(normaliser.kind)) return;
    if (is_sparse(normaliser.kind))
      return FindThresholds(normaliser, tile_, count_, kWidth, shifts_);
    const T* own = lse + plan_.index(first_);
    if (ConvertShifts(normaliser.kind, own, 0, rows_, shifts_)) return;
    HWY_ALIGN T reference[kWidth];
    HWY_ALIGN T sum[kWidth];
    const OnlineNormaliser<T> online{normaliser, reference, sum};
    start(online);
    std::copy_n(tile_, count_ * kWidth, scratch);
    online.update(scratch, count_, kWidth, nullptr, 0);
    StoreOnlineShifts(online, own, 0, rows_, shifts_);
  }

  void start(const OnlineNormaliser<T>& online) const {
    problem_.sinks == nullptr
        ? online.start(kWidth)
        : online.start_with_sink(kWidth, problem_.sinks[first_.head] * T(kLog4E));
  }

  void drop(T* tile) const {
    const Dropout& dropout = problem_.dropout;
    if (dropout.probability == 0) return;
    const uint32_t threshold = dropout_threshold(dropout);
    const T kept = static_cast<T>(1 / (1 - dropout.probability));
    for (int64_t r = 0; r < rows_; ++r) {
      const uint32_t row_key = dropout_row_key(dropout, row(r), problem_.shape.heads);
      for (int64_t n = 0; n < edges_[r].count; ++n) {
        const uint32_t key = dropout_key(dropout.first_key + edges_[r].keys[n]);
        tile[n * kWidth + r] *= dropout_mix(row_key ^ key) < threshold ? T(0) : kept;
      }
    }
  }

  // Calls work(r, key, index of the edge in its list, index in a tile) for each edge.
  template <class Work>
  void each_edge(const Work& work) const {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t n = 0; n < edges_[r].count; ++n)
        work(r, edges_[r].keys[n], edges_[r].first + n, n * kWidth + r);
    }
  }

  const Row& first() const { return first_; }
  int64_t rows() const { return rows_; }
  int64_t count() const { return count_; }  // edges of the longest row
  T* tile() const { return tile_; }
  const RowShifts<T>& shifts() const { return shifts_; }
  const EdgeScores<T>& scores() const { return *scores_; }
  const EdgeScores<T>& products() const { return products_; }  // with values
  Row row(int64_t r) const { return {first_.batch, first_.head, first_.query + r}; }
  const T* query(int64_t r) const {
    return problem_.query.row(first_.batch, first_.head, first_.query + r);
  }
  Neighbours<T> keys(int64_t r) const { return neighbours(problem_.key, r, problem_.shape.depth); }
  Neighbours<T> values(int64_t r) const {
    return neighbours(problem_.value, r, problem_.shape.value_depth);
  }

 private:
  Neighbours<T> neighbours(const View<const T>& view, int64_t r, int64_t depth) const {
    return {view.row(first_.batch, KeyHead(problem_.shape, first_.head), 0),
            view.row_stride,
            edges_[r].keys,
            edges_[r].count,
            edges_[r].known,
            depth * static_cast<int64_t>(sizeof(T))};
  }

  void mask() {
    constexpr T kOutside = -std::numeric_limits<T>::infinity();
    for (int64_t r = 0; r < kWidth; ++r) {
      for (int64_t n = r < rows_ ? edges_[r].count : 0; n < count_; ++n)
        tile_[n * kWidth + r] = kOutside;
    }
    if (plan_.scope.rest.empty()) return;
    each_edge([&](int64_t r, int64_t key, int64_t, int64_t place) {
      if (!sees_key(plan_.scope.rest, row(r), key, problem_.shape.keys)) tile_[place] = kOutside;
    });
  }

  const EdgePlan<T>& plan_;
  const Problem<T>& problem_;
  EdgeBias<T> bias_;
  std::unique_ptr<EdgeScores<T>> scores_;
  PairEdges<T, DotPair<T>> products_;
  T unit_;
  RowShifts<T> shifts_;  // [width]
  int64_t room_ = 0;
  T* tile_ = nullptr;
  Row first_;
  int64_t rows_ = 0, count_ = 0;
  EdgeRow edges_[kWidth];
};

// Calls work(panel) for each panel of the `rows` queries from `first` on.
template <class T, class Work>
void EachEdgePanel(EdgePanel<T>& panel, const Row& first, int64_t rows, const Work& work) {
  for (int64_t r = 0; r < rows; r += panel.kWidth) {
    panel.load({first.batch, first.head, first.query + r}, std::min(panel.kWidth, rows - r));
    work();
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
