#if defined(ATTEND_KERNELS_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_FORWARD_INL_H_
#undef ATTEND_KERNELS_FORWARD_INL_H_
#else
#define ATTEND_KERNELS_FORWARD_INL_H_
#endif

#include <algorithm>
#include <optional>

#include "attend/kernels/additive-rows-inl.h"
#include "attend/kernels/bias-inl.h"
#include "attend/kernels/dot-inl.h"
#include "attend/kernels/mask-inl.h"
#include "attend/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// One block of queries of one head against all its keys. The block is cut into panels as wide as
// the micro-kernel; each tile of keys visits every panel while it is in the cache.
template <class T, class Scores>
class ForwardBlock {
 public:
  ForwardBlock(const ForwardPlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        scores_(problem_, plan.additive),
        bias_(problem_, kPanel<T>, arena) {
    const Shape& shape = problem_.shape;
    split_ = task % plan.splits;
    task /= plan.splits;
    const int64_t head = task / plan.blocks, begin = task % plan.blocks * kForwardRows;
    const int64_t end = std::min(begin + kForwardRows, shape.queries);
    keys_ = {split_ * plan.split_keys, std::min(shape.keys, (split_ + 1) * plan.split_keys)};
    tile_ = arena.take(kTileKeys * kPanel<T>);
    for (int64_t query = begin; query < end; query += kPanel<T>) {
      add_panel({head / shape.heads, head % shape.heads, query}, std::min(kPanel<T>, end - query),
                arena);
    }
  }

  void run() {
    int64_t begin = keys_.end, end = keys_.begin;
    for (int64_t p = 0; p < count_; ++p) {
      begin = std::min(begin, std::max(keys_.begin, panels_[p]->scope.hull().begin));
      end = std::max(end, std::min(keys_.end, panels_[p]->scope.hull().end));
    }
    for (int64_t key = begin; key < end; key += kTileKeys) {
      for (int64_t p = 0; p < count_; ++p) visit(*panels_[p], key, std::min(key + kTileKeys, end));
    }
    for (int64_t p = 0; p < count_; ++p) finish(*panels_[p]);
  }

 private:
  static constexpr int64_t kMaxPanels = kForwardRows / kPanel<T>;

  struct Panel {
    Row first;
    int64_t rows;
    int64_t width;  // rows rounded up to whole vectors
    BlockScope scope;
    Softmax<T> softmax;
    T* queries;
    T* context;  // [value_depth][width]
  };

  void add_panel(const Row& first, int64_t rows, Arena<T>& arena) {
    const int64_t width = RoundUpToLanes<T>(rows);
    const Softmax<T> softmax{arena.take(kPanel<T>), arena.take(kPanel<T>)};
    Panel& panel = panels_[count_++].emplace(
        Panel{first, rows, width, BlockScope(problem_.scope, first, rows, problem_.shape.keys),
              softmax, arena.take(scores_.panel_size(kPanel<T>)),
              arena.take(problem_.shape.value_depth * kPanel<T>)});
    problem_.sinks == nullptr || split_ > 0
        ? softmax.start(width)
        : softmax.start_with_sink(width, problem_.sinks[first.head] * T(kLog2E));
    std::fill_n(panel.context, problem_.shape.value_depth * width, T(0));
    scores_.load_queries(first, rows, width, panel.queries);
  }

  void visit(const Panel& panel, int64_t begin, int64_t end) {
    const KeyRange hull = panel.scope.hull();
    begin = std::max(begin, hull.begin);
    end = std::min(end, hull.end);
    if (begin >= end) return;
    const Cover cover = panel.scope.cover(begin, end);
    if (cover == Cover::empty) return;
    const int64_t keys = end - begin;
    scores_.scores(panel.first, begin, keys, panel.queries, panel.width, tile_);
    bias_.add(panel.first, panel.rows, begin, keys, panel.width, tile_);
    if (cover == Cover::partial) {
      MaskTile(panel.scope, panel.rows, begin, keys, panel.width, tile_);
    }
    panel.softmax.update(tile_, keys, panel.width, panel.context, problem_.shape.value_depth);
    add_values(panel, begin, keys);
  }

  // context[e][i] += sum_j v_je p_ij
  void add_values(const Panel& panel, int64_t first_key, int64_t keys) {
    const int64_t head = KeyHead(problem_.shape, panel.first.head);
    const T* value = problem_.value.row(panel.first.batch, head, first_key);
    Multiply<T>(problem_.shape.value_depth, panel.width, keys,
                {value, 1, problem_.value.row_stride}, {tile_, panel.width}, true,
                {panel.context, panel.width});
  }

  void finish(const Panel& panel) {
    const Shape& shape = problem_.shape;
    const Row& at = panel.first;
    const Result<T> result = plan_.split_result(split_);
    T* lse = result.lse;
    if (lse != nullptr) lse += (at.batch * shape.heads + at.head) * shape.queries + at.query;
    panel.softmax.finish(panel.context, shape.value_depth, panel.width, panel.rows, lse);
    const View<T>& to = result.context;
    Transpose(panel.context, panel.width, shape.value_depth, panel.rows,
              to.row(at.batch, at.head, at.query), to.row_stride);
  }

  const ForwardPlan<T>& plan_;
  const Problem<T>& problem_;
  int64_t split_;
  KeyRange keys_;
  Scores scores_;
  TileBias<T> bias_;
  T* tile_;
  int64_t count_ = 0;
  std::optional<Panel> panels_[kMaxPanels];
};

template <class T>
void Forward(const ForwardPlan<T>& plan, int64_t task, Arena<T>& arena) {
  switch (plan.problem->score.family) {
    case Family::dot:
      return ForwardBlock<T, DotScores<T>>(plan, task, arena).run();
    case Family::additive:
      return few_queries(plan.problem->shape)
                 ? ForwardBlock<T, AdditiveRowScores<T>>(plan, task, arena).run()
                 : ForwardBlock<T, AdditiveScores<T>>(plan, task, arena).run();
    default:
      return;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
