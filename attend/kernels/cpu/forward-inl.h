#if defined(ATTEND_KERNELS_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_FORWARD_INL_H_
#undef ATTEND_KERNELS_FORWARD_INL_H_
#else
#define ATTEND_KERNELS_FORWARD_INL_H_
#endif

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "attend/kernels/cpu/dropout-inl.h"
#include "attend/kernels/cpu/half_rows-inl.h"
#include "attend/kernels/cpu/online-inl.h"
#include "attend/kernels/cpu/rows-inl.h"
#include "attend/kernels/cpu/sparse-inl.h"
#include "attend/kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// One block of queries of one head against all its keys. The block is divided into panels as wide
// as the micro-kernel; each tile of keys visits every panel while it is in the cache.
template <class T>
class ForwardBlock {
 public:
  ForwardBlock(const ForwardPlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        thread_(plan.bfloat16.kernels),
        scorer_(problem_, plan.additive, kPanel<T>, arena,
                few_queries(problem_.shape) ? &plan.half : nullptr, &plan.bfloat16),
        dropout_(problem_, arena) {
    const Shape& shape = problem_.shape;
    scorer_.set_ahead(&ahead_);
    split_ = task % plan.splits;
    task /= plan.splits;
    const int64_t head = task / plan.blocks, begin = task % plan.blocks * kForwardRows;
    const int64_t end = std::min(begin + kForwardRows, shape.queries);
    keys_ = {split_ * plan.split_keys, std::min(shape.keys, (split_ + 1) * plan.split_keys)};
    const bool sparse = is_sparse(problem_.normaliser);
    tile_ = arena.take((sparse ? shape.keys : kTileKeys) * kPanel<T>);
    if (plan.bfloat16.kernels != nullptr) {
      operand_ = reinterpret_cast<uint32_t*>(arena.take(kTileKeys / 2 * kPanel<T>));
      packs_weights_ =
          problem_.normaliser == Normaliser::softmax && problem_.dropout.probability == 0;
      if (packs_weights_) scale_ = scorer_.defer_scale();
    }
    if (plan.result.context.data == nullptr) rows_ = arena.take(kPanel<T> * shape.value_depth);
    for (int64_t query = begin; query < end; query += kPanel<T>) {
      add_panel({head / shape.heads, head % shape.heads, query}, std::min(kPanel<T>, end - query),
                arena);
    }
  }

  void run() {
    if (is_sparse(problem_.normaliser)) {
      for (int64_t p = 0; p < count_; ++p) run_sparse(*panels_[p]);
      return;
    }
    int64_t begin = keys_.end, end = keys_.begin;
    for (int64_t p = 0; p < count_; ++p) {
      begin = std::min(begin, std::max(keys_.begin, panels_[p]->panel.scope.hull().begin));
      end = std::max(end, std::min(keys_.end, panels_[p]->panel.scope.hull().end));
    }
    for (int64_t key = begin; key < end;) {
      const int64_t next = next_tile(plan_.bfloat16, key);
      if (looks_ahead()) look_ahead(key, next, end);
      for (int64_t p = 0; p < count_; ++p) visit(*panels_[p], key, std::min(next, end));
      ahead_.fetch_all();
      key = next;
    }
    if constexpr (std::is_same_v<T, float>) add_packed();
    for (int64_t p = 0; p < count_; ++p) finish(*panels_[p]);
  }

 private:
  static constexpr int64_t kMaxPanels = kForwardRows / kPanel<T>;

  struct Context {
    Panel<T> panel;
    OnlineNormaliser<T> online;
    T* context;         // [value_depth][width]
    bool fresh = true;  // nothing was added to the context yet
  };

  void add_panel(const Row& first, int64_t rows, Arena<T>& arena) {
    BlockScope scope = scorer_.scope(first, rows);
    const OnlineNormaliser<T> online{
        {problem_, first.head}, arena.take(kPanel<T>), arena.take(kPanel<T>), scale_};
    T* queries = arena.take(scorer_.panel_size(kPanel<T>));
    T* context = arena.take(BFloat16Plan::padded(problem_.shape.value_depth) * kPanel<T>);
    const Context& state = panels_[count_++].emplace(
        Context{scorer_.load(first, rows, std::move(scope), queries), online, context});
    problem_.sinks == nullptr || split_ > 0
        ? online.start(state.panel.width)
        : online.start_with_sink(state.panel.width, problem_.sinks[first.head] * T(kLog4E));
    if (few_queries(problem_.shape)) clear(panels_[count_ - 1].value());
  }

  // Few queries prefetch separately; products of bf16 read operands that have just been packed.
  bool looks_ahead() const {
    return !few_queries(problem_.shape) && plan_.bfloat16.kernels == nullptr;
  }

  // While the products of the tile at `key` run, fetches the tile at `next`. After the last tile:
  // the output of this block and the input of the next one.
  void look_ahead(int64_t key, int64_t next, int64_t end) {
    const Row& first = panels_[0]->panel.first;
    ahead_.restart();
    next < end ? scorer_.add_tile(first, next, std::min(next + kTileKeys, end), ahead_)
               : look_beyond(first);
    const int64_t keys = std::min(next, end) - key;
    ahead_.divide(count_ * (ProductSteps<T>(keys, kPanel<T>) +
                            ProductSteps<T>(problem_.shape.value_depth, kPanel<T>)));
  }

  void look_beyond(const Row& first) {
    const Shape& s = problem_.shape;
    if (plan_.split_context(split_).data != nullptr)
      add_rows(plan_.split_context(split_), first, s.value_depth);
    const std::optional<Row> after = block_after(s, first, kForwardRows);
    if (!after || plan_.splits > 1) return;
    add_rows(problem_.query, *after, s.depth);
    if (is_other_key_head(s, first, *after))
      scorer_.add_tile(*after, 0, std::min(kTileKeys, s.keys), ahead_);
  }

  template <class U>
  void add_rows(const View<U>& operand, const Row& row, int64_t depth) {
    ahead_.add(operand.row(row.batch, row.head, row.query), operand.row_stride,
               std::min(kForwardRows, problem_.shape.queries - row.query), depth);
  }

  void clear(Context& state) {
    std::fill_n(state.context, problem_.shape.value_depth * state.panel.width, T(0));
    state.fresh = false;
  }

  void visit(Context& state, int64_t begin, int64_t end) {
    const Panel<T>& panel = state.panel;
    begin = std::max(begin, panel.scope.hull().begin);
    end = std::min(end, panel.scope.hull().end);
    const int64_t keys = end - begin;
    if (begin >= end || !scorer_.score(panel, begin, keys, tile_)) return;
    if constexpr (std::is_same_v<T, float>) {
      if (plan_.bfloat16.kernels != nullptr) {
        add_packed();
        pack(state, begin, keys);
        packed_ = {&state, begin};
        return;
      }
    }
    weigh(state, begin, keys);
    add_values(state, begin, keys, tile_);
  }

  // Turns the scores of the tile into weights.
  void weigh(Context& state, int64_t first_key, int64_t keys) {
    const Panel<T>& panel = state.panel;
    const int64_t depth = problem_.shape.value_depth;
    if (few_queries(problem_.shape) && problem_.normaliser == Normaliser::softmax) {
      state.online.update_rows(tile_, keys, panel.rows, panel.width, state.context, depth);
    } else {
      state.online.update(tile_, keys, panel.width, state.context, depth);
    }
    dropout_.apply(panel.first, first_key, keys, panel.width, tile_);
  }

  // Computes all scores of the panel's rows, their thresholds, then the weights.
  void run_sparse(Context& state) {
    const Panel<T>& panel = state.panel;
    const KeyRange hull = panel.scope.hull();
    const int64_t keys = std::max<int64_t>(0, hull.end - hull.begin), width = panel.width;
    const RowNormaliser<T>& normaliser = state.online.normaliser;
    const RowShifts<T> shifts{state.online.reference, state.online.sum};
    ScoreRows(scorer_, panel, tile_);
    FindThresholds(normaliser, tile_, keys, width, shifts);
    WeighTile(normaliser, shifts, keys, width, tile_);
    dropout_.apply(panel.first, hull.begin, keys, width, tile_);
    for (int64_t j = 0; j < keys; j += kTileKeys)
      add_values(state, hull.begin + j, std::min(kTileKeys, keys - j), tile_ + j * width);
    for (int64_t r = 0; r < width; ++r) {
      shifts.offset[r] = normaliser.threshold(shifts.offset[r]);
      if (shifts.offset[r] == std::numeric_limits<T>::infinity()) shifts.offset[r] *= -1;
    }
    store(state);
  }

  // context[e][i] += sum_j v_je p_ij
  void add_values(Context& state, int64_t first_key, int64_t keys, const T* weights) {
    const Shape& s = problem_.shape;
    const View<const T>& view = problem_.value;
    const int64_t offset = KeyOffset(problem_, view, state.panel.first, first_key);
    const int64_t width = state.panel.width;
    if (few_queries(s)) {
      const uint16_t* half = plan_.half.value == nullptr ? nullptr : plan_.half.value + offset;
      const T* plain = half == nullptr ? view.data + offset : nullptr;
      return WithRows(plain, half, plan_.half.bfloat16, view.row_stride, [&](auto row) HWY_ATTR {
        AddValueRows(row, value_fetch(state, first_key, keys), weights, keys, state.panel.rows,
                     width, s.value_depth, state.context);
      });
    }
    Multiply<T>(s.value_depth, width, keys, {view.data + offset, 1, view.row_stride},
                {weights, width}, !state.fresh, {state.context, width}, &ahead_);
    state.fresh = false;
  }

  // Turns the scores of the tile into weights and packs them for a product of bf16.
  void pack(Context& state, int64_t first_key, int64_t keys) {
    const int64_t width = state.panel.width;
    const BFloat16Rows place = BlockRows(first_key, keys);
    if (packs_weights_) {
      state.online.update_packed(tile_, place, width, state.context, problem_.shape.value_depth,
                                 operand_);
    } else {
      weigh(state, first_key, keys);
      PackRight(tile_, width, place, width, operand_);
    }
  }

  // As add_values, for the weights that were packed last. It follows the scores of the next tile,
  // since the processor reads an operand late if it was written just before.
  void add_packed() {
    if (packed_.state == nullptr) return;
    Context& state = *std::exchange(packed_.state, nullptr);
    MultiplyBFloat16Columns(plan_.bfloat16, plan_.bfloat16.value_columns,
                            BFloat16Plan::padded(problem_.shape.value_depth), state.panel.first,
                            packed_.first_key, operand_, state.panel.width, !state.fresh,
                            state.context);
    state.fresh = false;
  }

  // While values are read, these values and the keys of the next tile are fetched.
  RowFetch value_fetch(const Context& state, int64_t first_key, int64_t keys) const {
    const Row& first = state.panel.first;
    const int64_t next = first_key + keys;
    const int64_t end = std::min({next + kTileKeys, keys_.end, state.panel.scope.hull().end});
    return {MemoryRows(problem_, problem_.value, plan_.half.value, first, first_key, keys,
                       problem_.shape.value_depth),
            MemoryRows(problem_, problem_.key, plan_.half.key, first, next,
                       std::max<int64_t>(0, end - next), problem_.shape.depth)};
  }

  void finish(Context& state) {
    state.online.finish(state.context, problem_.shape.value_depth, state.panel.width,
                        plan_.splits == 1);
    store(state);
  }

  // The lse is reference + sum.
  void store(Context& state) {
    if (state.fresh) clear(state);
    const Shape& shape = problem_.shape;
    const Row& first = state.panel.first;
    const int64_t row = (first.batch * shape.heads + first.head) * shape.queries + first.query;
    const T* reference = state.online.reference;
    const T* offset = state.online.sum;
    if (plan_.splits > 1) {
      const RowShifts<T> to = plan_.split_lse(split_);
      std::copy_n(reference, state.panel.rows, to.reference + row);
      std::copy_n(offset, state.panel.rows, to.offset + row);
    } else if (plan_.result.lse != nullptr) {
      std::transform(reference, reference + state.panel.rows, offset, plan_.result.lse + row,
                     std::plus<>());
    }
    const View<T> context = plan_.split_context(split_);
    const bool only_rounded = context.data == nullptr;
    T* const to = only_rounded ? rows_ : context.row(first.batch, first.head, first.query);
    const int64_t stride = only_rounded ? shape.value_depth : context.row_stride;
    Transpose(state.context, state.panel.width, shape.value_depth, state.panel.rows, to, stride);
    if constexpr (std::is_same_v<T, float>) {
      const View<BFloat16>& rounded = plan_.rounded;
      if (rounded.data != nullptr)
        narrow_block({to, stride}, state.panel.rows, shape.value_depth,
                     {rounded.row(first.batch, first.head, first.query), rounded.row_stride});
    }
  }

  const ForwardPlan<T>& plan_;
  const Problem<T>& problem_;
  int64_t split_;
  KeyRange keys_;
  BFloat16Thread thread_;
  RowsAhead ahead_;
  TileScorer<T> scorer_;
  TileDropout<T> dropout_;
  T* tile_;
  T* rows_ = nullptr;  // contexts of a panel before they are rounded
  // Products of bf16:
  bool packs_weights_ = false;   // weights are packed as they are computed
  T scale_ = 1;                  // factor that scores still lack
  uint32_t* operand_ = nullptr;  // weights as an operand
  struct {
    Context* state = nullptr;
    int64_t first_key = 0;
  } packed_;  // the operand's panel; null: none
  int64_t count_ = 0;
  std::optional<Context> panels_[kMaxPanels];
};

template <class T>
void Forward(const ForwardPlan<T>& plan, int64_t task, Arena<T>& arena) {
  ForwardBlock<T>(plan, task, arena).run();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
