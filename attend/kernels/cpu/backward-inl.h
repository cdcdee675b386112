#if defined(ATTEND_KERNELS_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_BACKWARD_INL_H_
#undef ATTEND_KERNELS_BACKWARD_INL_H_
#else
#define ATTEND_KERNELS_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <optional>

#include "attend/kernels/cpu/dropout-inl.h"
#include "attend/kernels/cpu/shifts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

template <class T>
HWY_INLINE T DotProduct(const T* a, const T* b, int64_t count) {
  const Tag<T> d;
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) {
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  }
  T total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

// Inputs of backward for a panel of queries, other than their scores.
template <class T>
class UpstreamPanel {
 public:
  UpstreamPanel(const BackwardPlan<T>& plan, Arena<T>& arena)
      : plan_(plan),
        depth_(plan.problem->shape.value_depth),
        grad_(arena.take(BFloat16Plan::padded(depth_) * kBackwardRows)),
        rows_(arena.take(BFloat16Plan::padded(depth_) / 2 * kBackwardRows)),
        shifts_{arena.take(kBackwardRows), arena.take(kBackwardRows)},
        delta_(arena.take(kBackwardRows)) {}

  // `chunk` counts if the order of the keys matters.
  void load(const Row& first, int64_t rows, int64_t width, int64_t chunk = 0) {
    const Shape& s = plan_.problem->shape;
    const View<const T>& grad = plan_.upstream.grad_context;
    if (plan_.bfloat16.kernels == nullptr) {
      LoadPanel(grad.row(first.batch, first.head, first.query), grad.row_stride, rows, depth_,
                grad_, width);
    } else if constexpr (std::is_same_v<T, float>) {
      LoadBFloat16Panel(plan_.bfloat16.grad_context, first, rows, depth_, width, rows_, grad_);
    }
    int64_t index = (first.batch * s.heads + first.head) * s.queries + first.query;
    if (is_ordered(plan_.problem->normaliser)) index += chunk * s.batch * s.heads * s.queries;
    LoadShifts(plan_.shifts, index, rows, width, shifts_);
    for (int64_t r = 0; r < width; ++r)
      delta_[r] = r < rows ? delta({first.batch, first.head, first.query + r}, index + r) : T(0);
  }

  // Computes dp_ij = dc_i . v_j as gradients[j][i].
  void multiply(const Row& first, int64_t key, int64_t keys, int64_t width, T* gradients,
                RowsAhead* ahead = nullptr) const {
    const Problem<T>& problem = *plan_.problem;
    if constexpr (std::is_same_v<T, float>) {
      if (plan_.bfloat16.kernels != nullptr)
        return MultiplyBFloat16Rows(plan_.bfloat16, plan_.bfloat16.value_rows,
                                    BFloat16Plan::padded(depth_), first, key, keys, grad_, width,
                                    gradients);
    }
    const T* value = problem.value.row(first.batch, KeyHead(problem.shape, first.head), key);
    Multiply<T>(keys, width, depth_, {value, problem.value.row_stride, 1}, {grad_, width}, false,
                {gradients, width}, ahead);
  }

  const RowShifts<T>& shifts() const { return shifts_; }
  const T* delta() const { return delta_; }
  // If the order of the keys matters, it grows with each tile.
  T* delta() { return delta_; }

 private:
  // Number subtracted from each dp of the row: for softmax and softpick sum_j p_ij dp_ij = dc_i .
  // c_i, less dlse. If the order of the keys matters: the sum over the keys before the chunk.
  T delta(const Row& row, int64_t index) const {
    const Normaliser normaliser = plan_.problem->normaliser;
    if (is_sparse(normaliser) || is_ordered(normaliser))
      return plan_.deltas == nullptr ? T(0) : plan_.deltas[index];
    if (!sums_exponentials(normaliser)) return 0;
    const T* grad = plan_.upstream.grad_context.row(row.batch, row.head, row.query);
    const T* context = plan_.upstream.context.row(row.batch, row.head, row.query);
    const T all = DotProduct(grad, context, depth_);
    return plan_.upstream.grad_lse == nullptr ? all : all - plan_.upstream.grad_lse[index];
  }

  const BackwardPlan<T>& plan_;
  int64_t depth_;
  T* grad_;              // [value_depth][width] dc; for bf16: as a right operand
  T* rows_;              // [width][padded] dc as stored in bf16
  RowShifts<T> shifts_;  // [width]
  T* delta_;             // [width]
};

// One chunk of the keys of one key head, against every query block of the heads that share it.
// Accumulates the gradients of the chunk's keys and values; query gradients are written per block.
template <class T>
class BackwardChunk {
 public:
  BackwardChunk(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        shape_(problem_.shape),
        chunk_(task % plan.chunks),
        batch_(task / plan.chunks / shape_.key_heads),
        key_head_(task / plan.chunks % shape_.key_heads),
        begin_(chunk_ * plan.chunk_keys),
        end_(std::min(begin_ + plan.chunk_keys, shape_.keys)),
        padded_(plan.bfloat16.kernels == nullptr ? RoundUpToLanes<T>(shape_.value_depth)
                                                 : BFloat16Plan::padded(shape_.value_depth)),
        thread_(plan.bfloat16.kernels),
        scorer_(problem_, plan.additive, kBackwardRows, arena, few_keys(shape_), &plan.bfloat16),
        gradients_(MakeGradients(plan, task, scorer_.scores(), arena)),
        upstream_(plan, arena),
        dropout_(problem_, arena) {
    scorer_.set_ahead(&ahead_);
    gradients_->set_ahead(&ahead_);
    queries_ = arena.take(scorer_.panel_size(kBackwardRows));
    weights_ = arena.take(kTileKeys * kBackwardRows);
    tile_ = arena.take(kTileKeys * kBackwardRows);
    if (problem_.score.soft_cap > 0) cap_slope_ = arena.take(kTileKeys * kBackwardRows);
    if (is_ordered(problem_.normaliser)) {
      ends_.emplace(plan.chunk_keys, kBackwardRows, arena);
      powers_ = arena.take(kTileKeys * kBackwardRows);
    }
    rows_ = arena.take(padded_ * kBackwardRows);
    const int64_t room = padded_ * plan.chunk_rows();
    value_gradient_ = arena.take(room);
    std::fill_n(value_gradient_, room, T(0));
    if (plan.bfloat16.kernels == nullptr) return;
    operand_ = reinterpret_cast<uint32_t*>(arena.take(padded_ * kBackwardRows / 2));
    weight_operand_ = reinterpret_cast<uint16_t*>(arena.take(kTileKeys * kBackwardRows / 2));
  }

  void run() {
    const int64_t group = shape_.heads / shape_.key_heads;
    for (int64_t head = key_head_ * group; head < (key_head_ + 1) * group; ++head) {
      gradients_->begin_head(batch_, head);
      const BiasGradients<T> bias = bias_gradients(head);
      if (bias.slope != nullptr) *bias.slope = 0;
      for (int64_t query = 0; query < shape_.queries; query += kBackwardRows) {
        visit({batch_, head, query}, std::min(kBackwardRows, shape_.queries - query), bias);
      }
      gradients_->end_head(head, begin_, end_ - begin_);
    }
    for (int64_t j = begin_; j < end_; ++j) {
      gradients_->store_key_gradient(j - begin_, plan_.gradients.key.row(batch_, key_head_, j));
      std::copy_n(value_gradient_ + (j - begin_) * padded_, shape_.value_depth,
                  plan_.gradients.value.row(batch_, key_head_, j));
    }
  }

 private:
  BiasGradients<T> bias_gradients(int64_t head) const {
    BiasGradients<T> to;
    const int64_t rows = chunk_ * shape_.batch * shape_.heads * shape_.queries;
    to.dense = plan_.gradients.bias;
    if (plan_.gradients.relative != nullptr) to.relative = plan_.relative_gradient(chunk_);
    if (plan_.partial_centres != nullptr) to.centres = plan_.partial_centres + rows;
    if (plan_.partial_widths != nullptr) to.widths = plan_.partial_widths + rows;
    if (plan_.partial_query_sums != nullptr) to.query_sums = plan_.partial_query_sums + rows;
    to.key_sums = plan_.gradients.key_sums;
    if (plan_.gradients.query_products != nullptr)
      to.query_products = plan_.product_gradient(chunk_);
    to.key_products = plan_.gradients.key_products;
    if (plan_.partial_slopes != nullptr) {
      to.slope = plan_.partial_slopes + (batch_ * plan_.chunks + chunk_) * shape_.heads + head;
    }
    return to;
  }

  // While the products of a tile of `keys` keys run, fetches the tile at `next`. After the last
  // tile: the output of this block and the input of the next one.
  void look_ahead(const Row& first, int64_t keys, int64_t next, int64_t end, int64_t width) {
    ahead_.restart();
    next < end ? scorer_.add_tile(first, next, std::min(next + kTileKeys, end), ahead_)
               : look_beyond(first);
    ahead_.divide(2 * ProductSteps<T>(keys, width) + ProductSteps<T>(shape_.depth, width) +
                  ProductSteps<T>(keys, shape_.depth) + ProductSteps<T>(keys, padded_));
  }

  void look_beyond(const Row& first) {
    add_queries(plan_.query_gradient(chunk_), first, shape_.depth);
    const std::optional<Row> after = block_after(shape_, first, kBackwardRows);
    if (after) {
      add_queries(problem_.query, *after, shape_.depth);
      add_queries(plan_.upstream.grad_context, *after, shape_.value_depth);
      if (sums_exponentials(problem_.normaliser))
        add_queries(plan_.upstream.context, *after, shape_.value_depth);
    }
    if (after && !is_other_key_head(shape_, first, *after)) return;
    add_keys(plan_.gradients.key, shape_.depth);
    add_keys(plan_.gradients.value, shape_.value_depth);
    if (after) scorer_.add_tile(*after, 0, std::min(kTileKeys, shape_.keys), ahead_);
  }

  template <class U>
  void add_queries(const View<U>& view, const Row& row, int64_t depth) {
    ahead_.add(view.row(row.batch, row.head, row.query), view.row_stride,
               std::min(kBackwardRows, shape_.queries - row.query), depth);
  }

  // Adds the first tile of the chunk.
  void add_keys(const View<T>& view, int64_t depth) {
    ahead_.add(view.row(batch_, key_head_, begin_), view.row_stride,
               std::min(kTileKeys, end_ - begin_), depth);
  }

  void visit(const Row& first, int64_t rows, const BiasGradients<T>& bias) {
    BlockScope scope = scorer_.scope(first, rows);
    const KeyRange hull = scope.hull();
    const int64_t begin = std::max(begin_, hull.begin), end = std::min(end_, hull.end);
    plan_.sees_block(chunk_, batch_, first.head, first.query) = begin < end ? 1 : 0;
    if (begin >= end) return;
    const Panel<T> panel = scorer_.load(first, rows, std::move(scope), queries_);
    const int64_t width = panel.width;
    gradients_->load_queries(first, rows, width, queries_);
    upstream_.load(first, rows, width, chunk_);
    if (ends_)
      ends_->find(scorer_, panel, begin, end, plan_.bfloat16, upstream_.shifts().reference, tile_);
    const View<const T>& grad = plan_.upstream.grad_context;
    const T* const grad_row = grad.row(first.batch, first.head, first.query);
    if (plan_.bfloat16.kernels == nullptr) {
      grad_rows_ =
          FindWholeRows(grad_row, grad.row_stride, rows, shape_.value_depth, rows_, padded_);
    } else if constexpr (std::is_same_v<T, float>) {
      PackBFloat16Rows(grad_row, grad.row_stride, rows, shape_.value_depth, padded_, rows_,
                       operand_);
    }
    number_ = 0;
    for (int64_t key = begin, next = 0; key < end; key = next, ++number_) {
      next = next_tile(plan_.bfloat16, key);
      const int64_t keys = std::min(next, end) - key;
      // Products of bf16 read operands that have just been packed.
      if (plan_.bfloat16.kernels == nullptr) look_ahead(first, keys, next, end, width);
      if (scorer_.score(panel, key, keys, weights_, cap_slope_)) add_tile(panel, key, keys, bias);
      ahead_.fetch_all();
    }
    gradients_->store_query_gradient(rows, width, plan_.query_gradient(chunk_));
  }

  void add_tile(const Panel<T>& panel, int64_t key, int64_t keys, const BiasGradients<T>& bias) {
    const Row& first = panel.first;
    const int64_t width = panel.width;
    upstream_.multiply(first, key, keys, width, tile_, &ahead_);
    // c_i = sum_j m_ij p_ij v_j with dropout factors m.
    dropout_.apply(first, key, keys, width, tile_);
    if (ends_)
      DifferentiateStick(keys, width, ends_->after(number_), upstream_.delta(), powers_, weights_,
                         tile_);
    else
      DifferentiateTile(RowNormaliser<T>(problem_, first.head), upstream_.shifts(),
                        upstream_.delta(), keys, width, weights_, tile_);
    dropout_.apply(first, key, keys, width, weights_);
    add_value_gradient(key, keys, panel.rows, width);
    scorer_.bias().differentiate(bias, first, panel.rows, key, keys, width, tile_);
    if (cap_slope_ != nullptr) scale_by_cap(keys * width);
    gradients_->add(tile_, key, key - begin_, keys, width);
  }

  // dv_j = sum_i m_ij p_ij dc_i
  void add_value_gradient(int64_t key, int64_t keys, int64_t queries, int64_t width) {
    T* const to = value_gradient_ + (key - begin_) * padded_;
    if (plan_.bfloat16.kernels == nullptr) {
      Multiply<T>(keys, padded_, queries, {weights_, width, 1},
                  {grad_rows_.data, grad_rows_.stride}, true, {to, padded_}, &ahead_);
    } else if constexpr (std::is_same_v<T, float>) {
      MultiplyBFloat16Tile(plan_.bfloat16, weights_, keys, queries, width, operand_, padded_,
                           weight_operand_, to);
    }
  }

  void scale_by_cap(int64_t count) {
    const Tag<T> d;
    for (int64_t i = 0; i < count; i += kLanes<T>) {
      hn::Store(hn::Mul(hn::Load(d, tile_ + i), hn::Load(d, cap_slope_ + i)), d, tile_ + i);
    }
  }

  const BackwardPlan<T>& plan_;
  const Problem<T>& problem_;
  const Shape& shape_;
  int64_t chunk_, batch_, key_head_, begin_, end_, padded_;
  BFloat16Thread thread_;
  RowsAhead ahead_;
  TileScorer<T> scorer_;
  std::unique_ptr<TileGradients<T>> gradients_;
  UpstreamPanel<T> upstream_;
  TileDropout<T> dropout_;
  T* queries_;
  T* weights_;                       // [keys][width] scores, then weights
  T* tile_;                          // [keys][width] dp, then ds
  T* cap_slope_ = nullptr;           // [keys][width]
  std::optional<TileEnds<T>> ends_;  // if the order of the keys matters
  T* powers_ = nullptr;              // [keys][width], likewise
  int64_t number_ = 0;               // number of the tile in the chunk
  WholeRows<T> grad_rows_ = {};
  T* rows_;                             // [rows][padded] dc, if it must be copied
  T* value_gradient_;                   // [chunk_keys][padded]
  uint32_t* operand_ = nullptr;         // dc as the right operand of the gradients of values
  uint16_t* weight_operand_ = nullptr;  // weights as the left operand
};

template <class T>
void Backward(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena) {
  BackwardChunk<T>(plan, task, arena).run();
}

// If the order of the keys matters, computes the shifts and deltas of each chunk for one block of
// queries of one head: a pass over all keys, from the last to the first, then back.
template <class T>
class ChunkStarts {
 public:
  ChunkStarts(const BackwardPlan<T>& plan, const Row& first, int64_t rows, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        thread_(plan.bfloat16.kernels),
        scorer_(problem_, plan.additive, kBackwardRows, arena, few_keys(problem_.shape),
                &plan.bfloat16),
        upstream_(plan, arena),
        dropout_(problem_, arena),
        panel_(scorer_.load(first, rows, scorer_.scope(first, rows),
                            arena.take(scorer_.panel_size(kBackwardRows)))),
        hull_(panel_.scope.hull()),
        weights_(arena.take((problem_.shape.keys / kTileKeys + 2) * kTileKeys * kBackwardRows)),
        gradients_(arena.take(kTileKeys * kBackwardRows)),
        sums_(arena.take(kBackwardRows)) {
    upstream_.load(first, rows, panel_.width);
  }

  void run() {
    if (hull_.begin >= hull_.end) return;
    const int64_t first = hull_.begin / kTileKeys, last = (hull_.end - 1) / kTileKeys;
    std::fill_n(sums_, panel_.width, T(0));
    for (int64_t number = last; number >= first; --number) {
      if (number == last || chunk_of(number) != chunk_of(number + 1))
        store(chunk_of(number), plan_.shifts.reference);
      weigh(range(number), weights(number));
    }
    std::fill_n(sums_, panel_.width, T(0));
    for (int64_t number = first; number <= last; ++number) {
      if (number == first || chunk_of(number) != chunk_of(number - 1))
        store(chunk_of(number), plan_.deltas);
      add_products(range(number), weights(number));
    }
  }

 private:
  // Tiles begin at multiples of kTileKeys, and so do chunks.
  int64_t chunk_of(int64_t number) const { return number * kTileKeys / plan_.chunk_keys; }
  KeyRange range(int64_t number) const {
    return {std::max(hull_.begin, number * kTileKeys),
            std::min(hull_.end, (number + 1) * kTileKeys)};
  }
  // Products of bf16 write more rows than keys, but no more than a whole tile.
  T* weights(int64_t number) const {
    return weights_ + (number - hull_.begin / kTileKeys) * kTileKeys * panel_.width;
  }

  void store(int64_t chunk, T* to) const {
    const Shape& s = problem_.shape;
    const Row& first = panel_.first;
    const int64_t head = (chunk * s.batch + first.batch) * s.heads + first.head;
    std::copy_n(sums_, panel_.rows, to + head * s.queries + first.query);
  }

  void weigh(const KeyRange& tile, T* weights) {
    const Tag<T> d;
    const int64_t keys = tile.end - tile.begin, width = panel_.width;
    if (!scorer_.score(panel_, tile.begin, keys, weights)) {
      std::fill_n(weights, keys * width, T(0));
      return;
    }
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto gone = hn::Load(d, sums_ + lane);
      hn::Store(BreakLanes<T>(keys, width, gone, weights + lane), d, sums_ + lane);
    }
  }

  void add_products(const KeyRange& tile, const T* weights) const {
    const int64_t keys = tile.end - tile.begin, width = panel_.width;
    upstream_.multiply(panel_.first, tile.begin, keys, width, gradients_);
    dropout_.apply(panel_.first, tile.begin, keys, width, gradients_);
    AddProducts(keys, width, weights, gradients_, sums_);
  }

  const BackwardPlan<T>& plan_;
  const Problem<T>& problem_;
  BFloat16Thread thread_;
  TileScorer<T> scorer_;
  UpstreamPanel<T> upstream_;
  TileDropout<T> dropout_;
  Panel<T> panel_;
  KeyRange hull_;
  T* weights_;    // [tiles][kTileKeys][width]
  T* gradients_;  // [keys][width] dp
  T* sums_;       // [width]
};

template <class T>
void StartChunks(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena) {
  const Shape& s = plan.problem->shape;
  const int64_t head = task / plan.blocks(), begin = task % plan.blocks() * kBackwardRows;
  const Row first{head / s.heads, head % s.heads, begin};
  ChunkStarts<T>(plan, first, std::min(kBackwardRows, s.queries - begin), arena).run();
}

// Computes the shifts and deltas of a sparse normaliser for one block of queries of one head. With
// g = dp/ds at a fixed threshold, sum_j dp_ij/ds_ij = 0 gives delta = (sum_j g_ij dp_ij - dlse_i) /
// sum_j g_ij.
template <class T>
void SparseDeltas(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena) {
  const Problem<T>& problem = *plan.problem;
  const Shape& s = problem.shape;
  const int64_t blocks = (s.queries + kBackwardRows - 1) / kBackwardRows;
  const int64_t head = task / blocks, begin = task % blocks * kBackwardRows;
  const int64_t rows = std::min(kBackwardRows, s.queries - begin);
  TileScorer<T> scorer(problem, plan.additive, kBackwardRows, arena, few_keys(s));
  UpstreamPanel<T> upstream(plan, arena);
  const TileDropout<T> dropout(problem, arena);
  const Row first{head / s.heads, head % s.heads, begin};
  const Panel<T> panel = scorer.load(first, rows, scorer.scope(first, rows),
                                     arena.take(scorer.panel_size(kBackwardRows)));
  const int64_t width = panel.width;
  const RowNormaliser<T> normaliser(problem, first.head);
  T* scores = arena.take(s.keys * kBackwardRows);
  T* gradients = arena.take(kTileKeys * kBackwardRows);
  std::optional<AlphaSums<T>> sums;
  if (plan.by_alpha != nullptr) sums.emplace(width, arena);
  T* moment = arena.take(kBackwardRows);
  T* mass = arena.take(kBackwardRows);
  std::fill_n(moment, width, T(0));
  std::fill_n(mass, width, T(0));
  StoreSparseShifts(scorer, panel, normaliser, scores, head * s.queries + begin, arena,
                    plan.shifts);
  upstream.load(first, rows, width);
  const KeyRange hull = panel.scope.hull();
  for (int64_t key = hull.begin; key < hull.end; key += kTileKeys) {
    const int64_t keys = std::min(kTileKeys, hull.end - key);
    const T* tile = scores + (key - hull.begin) * width;
    upstream.multiply(first, key, keys, width, gradients);
    dropout.apply(first, key, keys, width, gradients);
    AddSlopes(normaliser, upstream.shifts(), keys, width, tile, gradients, moment, mass);
    if (sums)
      AddAlphaSums(normaliser.alpha, upstream.shifts(), keys, width, tile, gradients, *sums);
  }
  const T* grad_lse = plan.upstream.grad_lse;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t index = head * s.queries + begin + r;
    const T all = grad_lse == nullptr ? moment[r] : moment[r] - grad_lse[index];
    plan.deltas[index] = mass[r] == 0 ? T(0) : all / mass[r];
    const T by_lse = grad_lse == nullptr ? T(0) : grad_lse[index];
    if (sums)
      plan.by_alpha[index] = mass[r] == 0 ? T(0) : sums->gradient(r, normaliser.alpha - 1, by_lse);
  }
}

template <class T>
void Deltas(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena) {
  is_ordered(plan.problem->normaliser) ? StartChunks(plan, task, arena)
                                       : SparseDeltas(plan, task, arena);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
