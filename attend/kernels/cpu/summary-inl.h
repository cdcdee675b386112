#if defined(ATTEND_KERNELS_SUMMARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_SUMMARY_INL_H_
#undef ATTEND_KERNELS_SUMMARY_INL_H_
#else
#define ATTEND_KERNELS_SUMMARY_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <optional>

#include "attend/kernels/cpu/shifts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Tiles of the weights of one block of selected rows of one head.
template <class T>
class WeightTiles {
 public:
  WeightTiles(const SummaryPlan<T>& plan, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        scorer_(problem_, plan.additive, kBackwardRows, arena, few_keys(problem_.shape)),
        queries_(arena.take(scorer_.panel_size(kBackwardRows))),
        shifts_{arena.take(kBackwardRows), arena.take(kBackwardRows)},
        tile_(arena.take(kTileKeys * kBackwardRows)) {
    if (is_ordered(problem_.normaliser)) ends_.emplace(problem_.shape.keys, kBackwardRows, arena);
  }

  Panel<T> load(int64_t batch, int64_t head, int64_t begin, int64_t rows) {
    const Shape& s = problem_.shape;
    const Row first{batch, head, plan_.selection.first_row + begin};
    Panel<T> panel = scorer_.load(first, rows, scorer_.scope(first, rows), queries_);
    LoadShifts(plan_.shifts, (batch * s.heads + head) * s.queries + first.query, rows, panel.width,
               shifts_);
    const KeyRange hull = panel.scope.hull();
    if (ends_) ends_->find(scorer_, panel, hull.begin, hull.end, {}, shifts_.reference, tile_);
    return panel;
  }

  // Calls work(key, keys) for the tiles of a panel that are not outside its scope, with the weights
  // in tile().
  template <class Work>
  void each(const Panel<T>& panel, const Work& work) {
    const KeyRange hull = panel.scope.hull();
    int64_t number = 0;
    for (int64_t key = hull.begin; key < hull.end; key += kTileKeys, ++number) {
      const int64_t keys = std::min(kTileKeys, hull.end - key);
      if (ends_) std::copy_n(ends_->after(number), panel.width, shifts_.reference);
      if (weigh(panel, key, keys)) work(key, keys);
    }
  }

  // tile()[j][i] = p_ij; false if all keys are outside the scope.
  bool weigh(const Panel<T>& panel, int64_t key, int64_t keys) {
    if (!scorer_.score(panel, key, keys, tile_)) return false;
    WeighTile(RowNormaliser<T>(problem_, panel.first.head), shifts_, keys, panel.width, tile_);
    return true;
  }

  const T* tile() const { return tile_; }

 private:
  const SummaryPlan<T>& plan_;
  const Problem<T>& problem_;
  TileScorer<T> scorer_;
  T* queries_;
  RowShifts<T> shifts_;
  T* tile_;
  std::optional<TileEnds<T>> ends_;
};

// Keeps the largest weights of a row, largest first; equal ones in order of arrival.
template <class T>
void Insert(T weight, int64_t key, int64_t top, T* weights, int64_t* keys) {
  if (!(weight > weights[top - 1])) return;
  int64_t place = top - 1;
  for (; place > 0 && weight > weights[place - 1]; --place) {
    weights[place] = weights[place - 1];
    keys[place] = keys[place - 1];
  }
  weights[place] = weight;
  keys[place] = key;
}

// Initialises the outputs for rows begin ... begin + rows - 1 of the selection.
template <class T>
void StartRows(const SummaryPlan<T>& plan, int64_t batch, int64_t n, int64_t begin, int64_t rows) {
  const int64_t out = (batch * plan.heads() + n) * plan.selection.rows + begin;
  for (int64_t r = 0; r < rows; ++r) {
    if (plan.weights.data != nullptr)
      std::fill_n(plan.weights.row(batch, n, begin + r), plan.problem->shape.keys, T(0));
    if (plan.entropy != nullptr) plan.entropy[out + r] = 0;
  }
  if (plan.top == 0) return;
  std::fill_n(plan.top_weights + out * plan.top, rows * plan.top, T(0));
  std::fill_n(plan.top_keys + out * plan.top, rows * plan.top, int64_t{-1});
}

// Adds one weight to row `out` of the results; keys must ascend.
template <class T>
void AddWeight(const SummaryPlan<T>& plan, int64_t out, int64_t key, T weight) {
  if (plan.top > 0) {
    Insert(weight, key, plan.top, plan.top_weights + out * plan.top,
           plan.top_keys + out * plan.top);
  }
  if (plan.entropy != nullptr && weight != 0) plan.entropy[out] -= weight * std::log(weight);
}

// Computes rows of the weights, their largest weights and their entropies.
template <class T>
void SummariseRows(const SummaryPlan<T>& plan, int64_t task, Arena<T>& arena) {
  WeightTiles<T> tiles(plan, arena);
  // Clang does not capture structured bindings in lambdas.
  const auto place = plan.place(task);
  const int64_t batch = place.batch, n = place.head;
  const int64_t begin = place.block * kBackwardRows;
  const int64_t rows = std::min(kBackwardRows, plan.selection.rows - begin);
  const int64_t out = (batch * plan.heads() + n) * plan.selection.rows + begin;
  const Panel<T> panel = tiles.load(batch, plan.head(n), begin, rows);
  StartRows(plan, batch, n, begin, rows);
  tiles.each(panel, [&](int64_t key, int64_t keys) {
    if (plan.weights.data != nullptr) {
      Transpose(tiles.tile(), panel.width, keys, rows, plan.weights.row(batch, n, begin) + key,
                plan.weights.row_stride);
    }
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t r = 0; r < rows; ++r) {
        AddWeight(plan, out + r, key + j, tiles.tile()[j * panel.width + r]);
      }
    }
  });
}

// Sums over the selected rows for one block of keys.
template <class T>
void SumColumns(const SummaryPlan<T>& plan, int64_t task, Arena<T>& arena) {
  const Shape& s = plan.problem->shape;
  WeightTiles<T> tiles(plan, arena);
  const auto [batch, n, block] = plan.place(task);
  const int64_t key = block * kTileKeys;
  const int64_t keys = std::min(kTileKeys, s.keys - key);
  T* sums = plan.column_sums + (batch * plan.heads() + n) * s.keys + key;
  std::fill_n(sums, keys, T(0));
  for (int64_t begin = 0; begin < plan.selection.rows; begin += kBackwardRows) {
    const int64_t rows = std::min(kBackwardRows, plan.selection.rows - begin);
    const Panel<T> panel = tiles.load(batch, plan.head(n), begin, rows);
    if (!tiles.weigh(panel, key, keys)) continue;
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t r = 0; r < rows; ++r) sums[j] += tiles.tile()[j * panel.width + r];
    }
  }
}

// The same for all keys of a head, because the weights of a tile need the later tiles.
template <class T>
void SumOrderedColumns(const SummaryPlan<T>& plan, int64_t task, Arena<T>& arena) {
  WeightTiles<T> tiles(plan, arena);
  const auto place = plan.place(task);
  T* sums = plan.column_sums + task * plan.problem->shape.keys;
  std::fill_n(sums, plan.problem->shape.keys, T(0));
  for (int64_t begin = 0; begin < plan.selection.rows; begin += kBackwardRows) {
    const int64_t rows = std::min(kBackwardRows, plan.selection.rows - begin);
    const Panel<T> panel = tiles.load(place.batch, plan.head(place.head), begin, rows);
    tiles.each(panel, [&](int64_t key, int64_t keys) {
      for (int64_t j = 0; j < keys; ++j) {
        for (int64_t r = 0; r < rows; ++r) sums[key + j] += tiles.tile()[j * panel.width + r];
      }
    });
  }
}

template <class T>
void Summarise(const SummaryPlan<T>& plan, int64_t task, Arena<T>& arena) {
  if (plan.column_sums == nullptr) return SummariseRows(plan, task, arena);
  is_ordered(plan.problem->normaliser) ? SumOrderedColumns(plan, task, arena)
                                       : SumColumns(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
