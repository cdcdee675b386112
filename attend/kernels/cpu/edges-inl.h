#if defined(ATTEND_KERNELS_EDGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_EDGES_INL_H_
#undef ATTEND_KERNELS_EDGES_INL_H_
#else
#define ATTEND_KERNELS_EDGES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "attend/kernels/cpu/backward-inl.h"
#include "attend/kernels/cpu/edge_panel-inl.h"
#include "attend/kernels/cpu/summary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Normalised rows of a panel: weights in the panel's tile, lse = reference + offset, and the factor
// of a context row.
template <class T>
struct EdgeWeights {
  HWY_ALIGN T reference[kLanes<T>];
  HWY_ALIGN T offset[kLanes<T>];
  HWY_ALIGN T factor[kLanes<T>];

  void normalise(const RowNormaliser<T>& normaliser, const EdgePanel<T>& panel) {
    constexpr int64_t kWidth = kLanes<T>;
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    std::fill_n(factor, kWidth, T(1));
    if (is_sparse(normaliser.kind)) {
      const RowShifts<T> shifts{reference, offset};
      FindThresholds(normaliser, panel.tile(), panel.count(), kWidth, shifts);
      WeighTile(normaliser, shifts, panel.count(), kWidth, panel.tile());
      for (T& x : offset) x = x == kInfinity ? -kInfinity : normaliser.threshold(x);
      return;
    }
    const OnlineNormaliser<T> online{normaliser, reference, offset};
    panel.start(online);
    online.update(panel.tile(), panel.count(), kWidth, nullptr, 0);
    for (int64_t r = 0; sums_exponentials(normaliser.kind) && r < kWidth; ++r)
      factor[r] = offset[r] == 0 ? T(0) : 1 / online.divisor(r);
    online.finish(nullptr, 0, kWidth);
  }
};

// One block of queries of one head.
template <class T>
void EdgeForward(const EdgePlan<T>& plan, int64_t task, Arena<T>& arena) {
  const Problem<T>& problem = *plan.problem;
  const Row first = plan.first_row(task);
  const int64_t rows = std::min(kBackwardRows, problem.shape.queries - first.query);
  const int64_t depth = problem.shape.value_depth;
  EdgePanel<T> panel(plan, first, rows, arena);
  T* context = arena.take(RoundUpToLanes<T>(depth));
  EachEdgePanel(panel, first, rows, [&] {
    EdgeWeights<T> weights;
    panel.score();
    weights.normalise({problem, first.head}, panel);
    panel.drop(panel.tile());
    for (int64_t r = 0; r < panel.rows(); ++r) {
      const Row row = panel.row(r);
      // c_i = sum_j w_ij v_j
      std::fill_n(context, RoundUpToLanes<T>(depth), T(0));
      panel.products().differentiate(nullptr, panel.values(r), panel.tile() + r, panel.kWidth,
                                     context, nullptr);
      T* to = plan.result.context.row(row.batch, row.head, row.query);
      std::transform(context, context + depth, to, [&](T x) { return weights.factor[r] * x; });
      if (plan.result.lse != nullptr)
        plan.result.lse[plan.index(row)] = weights.reference[r] + weights.offset[r];
    }
  });
}

// Gradients of one block of queries of one head, and per edge the inputs for the gradients of keys
// and values.
template <class T>
class EdgeQueries {
 public:
  EdgeQueries(const EdgePlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        task_(task),
        first_(plan.first_row(task)),
        rows_(std::min(kBackwardRows, problem_.shape.queries - first_.query)),
        padded_(RoundUpToLanes<T>(problem_.shape.depth)),
        panel_(plan, first_, rows_, arena),
        gradients_(arena.take(panel_.room())),
        delta_(arena.take(kLanes<T>)),
        sum_(arena.take(padded_)),
        vector_(arena.take(padded_)) {
    if (problem_.score.soft_cap > 0) cap_slope_ = arena.take(panel_.room());
    if (is_ordered(problem_.normaliser)) powers_ = arena.take(panel_.room());
    if (plan.by_alpha != nullptr) alpha_sums_.emplace(kLanes<T>, arena);
    std::fill_n(vector_, padded_, T(0));
  }

  void run() {
    EachEdgePanel(panel_, first_, rows_, [&] { visit(); });
    if (plan_.vector_sums == nullptr) return;
    const Shape& s = problem_.shape;
    const int64_t block = first_.batch * plan_.blocks() + task_ % plan_.blocks();
    T* to = plan_.vector_sums + (block * s.heads + first_.head) * s.depth;
    for (int64_t a = 0; a < s.depth; ++a) to[a] = T(problem_.score.scale) * vector_[a];
  }

 private:
  void visit() {
    constexpr int64_t kWidth = kLanes<T>;
    const int64_t count = panel_.count();
    panel_.score(cap_slope_);
    panel_.find_shifts(plan_.upstream.lse, gradients_);
    store_shifts();
    multiply_values();
    panel_.drop(gradients_);
    find_delta();
    if (powers_ != nullptr)
      DifferentiateStick(count, kWidth, panel_.shifts().reference, delta_, powers_, panel_.tile(),
                         gradients_);
    else
      DifferentiateTile(RowNormaliser<T>(problem_, first_.head), panel_.shifts(), delta_, count,
                        kWidth, panel_.tile(), gradients_);
    panel_.drop(panel_.tile());
    const int64_t list = plan_.list(first_.batch, first_.head);
    panel_.each_edge([&](int64_t, int64_t, int64_t number, int64_t place) {
      plan_.by_value[list + number] = panel_.tile()[place];
      plan_.by_score[list + number] = gradients_[place];
      if (cap_slope_ == nullptr) return;
      gradients_[place] *= cap_slope_[place];
      plan_.by_product[list + number] = gradients_[place];
    });
    for (int64_t r = 0; r < panel_.rows(); ++r) differentiate(r);
  }

  void store_shifts() {
    if (plan_.shifts.reference == nullptr) return;
    const int64_t index = plan_.index(panel_.first());
    std::copy_n(panel_.shifts().reference, panel_.rows(), plan_.shifts.reference + index);
    std::copy_n(panel_.shifts().offset, panel_.rows(), plan_.shifts.offset + index);
  }

  const T* grad_context(int64_t r) const {
    const Row row = panel_.row(r);
    return plan_.upstream.grad_context.row(row.batch, row.head, row.query);
  }

  // dp_ij = dc_i . v_j
  void multiply_values() {
    std::fill_n(gradients_, panel_.count() * kLanes<T>, T(0));
    for (int64_t r = 0; r < panel_.rows(); ++r)
      panel_.products().score(grad_context(r), panel_.values(r), gradients_ + r, kLanes<T>);
  }

  // Number subtracted from each dp of a row: for softmax and softpick sum_j p_ij dp_ij = dc_i .
  // c_i, less dlse; for sparse normalisers see Deltas.
  void find_delta() {
    const RowNormaliser<T> normaliser(problem_, first_.head);
    HWY_ALIGN T mass[kLanes<T>] = {};
    std::fill_n(delta_, kLanes<T>, T(0));
    if (is_sparse(normaliser.kind)) {
      AddSlopes(normaliser, panel_.shifts(), panel_.count(), kLanes<T>, panel_.tile(), gradients_,
                delta_, mass);
      if (plan_.by_alpha != nullptr) find_by_alpha(normaliser.alpha, mass);
    } else if (!sums_exponentials(normaliser.kind)) {
      return;
    }
    const T* grad_lse = plan_.upstream.grad_lse;
    for (int64_t r = 0; r < panel_.rows(); ++r) {
      const Row row = panel_.row(r);
      if (sums_exponentials(normaliser.kind)) {
        const T* context = plan_.upstream.context.row(row.batch, row.head, row.query);
        delta_[r] = DotProduct(grad_context(r), context, problem_.shape.value_depth);
        mass[r] = 1;
      }
      if (grad_lse != nullptr) delta_[r] -= grad_lse[plan_.index(row)];
      delta_[r] = mass[r] == 0 ? T(0) : delta_[r] / mass[r];
    }
  }

  // Gradients by the alpha of each row.
  void find_by_alpha(T alpha, const T* mass) {
    const T* grad_lse = plan_.upstream.grad_lse;
    AddAlphaSums(alpha, panel_.shifts(), panel_.count(), kLanes<T>, panel_.tile(), gradients_,
                 alpha_sums_->clear(kLanes<T>));
    for (int64_t r = 0; r < panel_.rows(); ++r) {
      const int64_t index = plan_.index(panel_.row(r));
      const T by_lse = grad_lse == nullptr ? T(0) : grad_lse[index];
      plan_.by_alpha[index] = mass[r] == 0 ? T(0) : alpha_sums_->gradient(r, alpha - 1, by_lse);
    }
  }

  // dq_i = scale v sum_j ds_ij df/dq
  void differentiate(int64_t r) {
    const Row row = panel_.row(r);
    std::fill_n(sum_, padded_, T(0));
    panel_.scores().differentiate(panel_.query(r), panel_.keys(r), gradients_ + r, kLanes<T>, sum_,
                                  vector_);
    T* to = plan_.gradients.query.row(row.batch, row.head, row.query);
    for (int64_t a = 0; a < problem_.shape.depth; ++a)
      to[a] = EdgeFactor(problem_, row.head, a) * sum_[a];
  }

  const EdgePlan<T>& plan_;
  const Problem<T>& problem_;
  int64_t task_;
  Row first_;
  int64_t rows_, padded_;
  EdgePanel<T> panel_;
  T* gradients_;  // [edges][width] dp, then ds
  T* delta_;      // [width]
  T* sum_;        // [padded]
  T* vector_;     // [padded] sum_ij ds_ij f
  T* cap_slope_ = nullptr;
  T* powers_ = nullptr;  // [edges][width], if the order of the keys matters
  std::optional<AlphaSums<T>> alpha_sums_;
};

template <class T>
void EdgeQueryGradients(const EdgePlan<T>& plan, int64_t task, Arena<T>& arena) {
  EdgeQueries<T>(plan, task, arena).run();
}

// Gradients of one block of keys of one key head, each summed over its edges in order.
template <class T>
class EdgeKeys {
 public:
  EdgeKeys(const EdgePlan<T>& plan, int64_t task, Arena<T>& arena)
      : plan_(plan),
        problem_(*plan.problem),
        shape_(problem_.shape),
        batch_(task / plan.key_blocks() / shape_.key_heads),
        key_head_(task / plan.key_blocks() % shape_.key_heads),
        begin_(task % plan.key_blocks() * kTileKeys),
        keys_(std::min(kTileKeys, shape_.keys - begin_)),
        padded_(RoundUpToLanes<T>(shape_.depth)),
        value_padded_(RoundUpToLanes<T>(shape_.value_depth)),
        scores_(MakeEdgeScores(problem_, arena)),
        products_(problem_, value_padded_, T(1), arena),
        sum_(arena.take(padded_)),
        vector_(arena.take(padded_)),
        key_gradient_(arena.take(keys_ * padded_)),
        value_gradient_(arena.take(keys_ * value_padded_)) {
    std::fill_n(key_gradient_, keys_ * padded_, T(0));
    std::fill_n(value_gradient_, keys_ * value_padded_, T(0));
    std::fill_n(vector_, padded_, T(0));
    int64_t longest = 0;
    for (int64_t h = 0; h < group(); ++h) {
      const int64_t* ends = ends_of(key_head_ * group() + h);
      for (int64_t j = 0; j < keys_; ++j) longest = std::max(longest, ends[j + 1] - ends[j]);
    }
    by_edge_ = arena.take(longest);
  }

  void run() {
    for (int64_t head = key_head_ * group(); head < (key_head_ + 1) * group(); ++head) {
      scores_->begin_head(head);
      for (int64_t j = 0; j < keys_; ++j) add(head, j);
    }
    for (int64_t j = 0; j < keys_; ++j) {
      std::copy_n(key_gradient_ + j * padded_, shape_.depth,
                  plan_.gradients.key.row(batch_, key_head_, begin_ + j));
      std::copy_n(value_gradient_ + j * value_padded_, shape_.value_depth,
                  plan_.gradients.value.row(batch_, key_head_, begin_ + j));
    }
  }

 private:
  int64_t group() const { return shape_.heads / shape_.key_heads; }

  // Offsets of the edges of the block's keys.
  const int64_t* ends_of(int64_t head) const {
    const EdgeLists& lists = plan_.scope.lists;
    const int64_t list = (lists.batch_stride == 0 ? 0 : batch_) * plan_.by_key->heads +
                         (lists.head_stride == 0 ? 0 : head);
    return plan_.by_key->offsets.data() + list * (shape_.keys + 1) + begin_;
  }

  Neighbours<T> neighbours(const View<const T>& view, int64_t head, const int64_t* ends,
                           int64_t depth) const {
    return {view.row(batch_, head, 0),
            view.row_stride,
            plan_.by_key->queries.data() + ends[0],
            ends[1] - ends[0],
            ends_of(head)[shape_.keys - begin_] - ends[0],
            depth * static_cast<int64_t>(sizeof(T))};
  }

  // Gathers the numbers of the edges of a key.
  const T* gather(const T* from, int64_t head, const int64_t* ends) const {
    const EdgeLists& lists = plan_.scope.lists;
    const int64_t first = lists.row({batch_, head, 0})[0];
    const T* list = from + plan_.list(batch_, head) - first;
    for (int64_t n = ends[0]; n < ends[1]; ++n)
      by_edge_[n - ends[0]] = list[plan_.by_key->edges[n]];
    return by_edge_;
  }

  void add(int64_t head, int64_t j) {
    const int64_t* ends = ends_of(head) + j;
    // dv_j = sum_i m_ij p_ij dc_i
    T* value = value_gradient_ + j * value_padded_;
    products_.differentiate(nullptr,
                            neighbours(plan_.upstream.grad_context, head, ends, shape_.value_depth),
                            gather(plan_.by_value, head, ends), 1, value, nullptr);
    // dk_j = scale v sum_i ds_ij df/dk
    std::fill_n(sum_, padded_, T(0));
    scores_->differentiate(problem_.key.row(batch_, key_head_, begin_ + j),
                           neighbours(problem_.query, head, ends, shape_.depth),
                           gather(plan_.by_product, head, ends), 1, sum_, vector_);
    for (int64_t a = 0; a < shape_.depth; ++a)
      key_gradient_[j * padded_ + a] += EdgeFactor(problem_, head, a) * sum_[a];
  }

  const EdgePlan<T>& plan_;
  const Problem<T>& problem_;
  const Shape& shape_;
  int64_t batch_, key_head_, begin_, keys_, padded_, value_padded_;
  std::unique_ptr<EdgeScores<T>> scores_;
  PairEdges<T, DotPair<T>> products_;
  T* sum_;             // [padded]
  T* vector_;          // [padded], unused: the pass over queries sums it
  T* key_gradient_;    // [keys][padded]
  T* value_gradient_;  // [keys][value_padded]
  T* by_edge_;         // numbers of one key's edges
};

template <class T>
void EdgeKeyGradients(const EdgePlan<T>& plan, int64_t task, Arena<T>& arena) {
  EdgeKeys<T>(plan, task, arena).run();
}

// Computes the requested outputs for one block of selected rows of one head.
template <class T>
void EdgeSummary(const EdgePlan<T>& plan, int64_t task, Arena<T>& arena) {
  const SummaryPlan<T>& wanted = plan.summary;
  // Clang does not capture structured bindings in lambdas.
  const auto where = wanted.place(task);
  const int64_t batch = where.batch, n = where.head;
  const int64_t begin = where.block * kBackwardRows;
  const int64_t rows = std::min(kBackwardRows, wanted.selection.rows - begin);
  const Row first{batch, wanted.head(n), wanted.selection.first_row + begin};
  const int64_t list = (batch * wanted.heads() + n) * plan.columns;
  EdgePanel<T> panel(plan, first, rows, arena);
  T* scratch = arena.take(panel.room());
  StartRows(wanted, batch, n, begin, rows);
  EachEdgePanel(panel, first, rows, [&] {
    panel.score();
    panel.find_shifts(wanted.lse, scratch);
    WeighTile(RowNormaliser<T>(*plan.problem, first.head), panel.shifts(), panel.count(),
              panel.kWidth, panel.tile());
    const int64_t row = panel.first().query - wanted.selection.first_row;
    panel.each_edge([&](int64_t r, int64_t key, int64_t number, int64_t place) {
      const T weight = panel.tile()[place];
      if (wanted.edge_weights != nullptr) wanted.edge_weights[list + number] = weight;
      if (wanted.weights.data != nullptr) wanted.weights.row(batch, n, row + r)[key] = weight;
      AddWeight(wanted, (batch * wanted.heads() + n) * wanted.selection.rows + row + r, key,
                weight);
    });
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
