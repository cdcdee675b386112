#if defined(ATTEND_KERNELS_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_BACKWARD_INL_H_
#undef ATTEND_KERNELS_BACKWARD_INL_H_
#else
#define ATTEND_KERNELS_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "attend/kernels/additive-gradient-inl.h"
#include "attend/kernels/bias-inl.h"
#include "attend/kernels/dot-inl.h"
#include "attend/kernels/mask-inl.h"

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

// One chunk of the keys of one key head, against every query block of the heads that share it. The
// gradients of the chunk's keys and values gather here; those of the queries are written a block at
// a time, once a chunk.
template <class T, class Family>
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
        padded_(RoundUpToLanes<T>(shape_.value_depth)),
        family_(plan, task, arena),
        bias_(problem_, kRows, arena) {
    const int64_t depth = shape_.value_depth;
    weights_ = arena.take(kKeys * kRows);
    tile_ = arena.take(kKeys * kRows);
    panel_ = arena.take(depth * kRows);
    rows_ = arena.take(padded_ * kRows);
    shift_ = arena.take(kRows);
    delta_ = arena.take(kRows);
    value_gradient_ = arena.take(padded_ * plan.chunk_keys);
    std::fill_n(value_gradient_, padded_ * plan.chunk_keys, T(0));
  }

  void run() {
    const int64_t group = shape_.heads / shape_.key_heads;
    for (int64_t head = key_head_ * group; head < (key_head_ + 1) * group; ++head) {
      family_.begin_head(batch_, head);
      slope_gradient_ = 0;
      for (int64_t query = 0; query < shape_.queries; query += kRows) {
        visit({batch_, head, query}, std::min(kRows, shape_.queries - query));
      }
      family_.end_head(head, begin_, end_ - begin_);
      if (plan_.partial_slopes != nullptr) {
        plan_.partial_slopes[(batch_ * plan_.chunks + chunk_) * shape_.heads + head] =
            slope_gradient_;
      }
    }
    for (int64_t j = begin_; j < end_; ++j) {
      family_.store_key_gradient(j - begin_, plan_.gradients.key.row(batch_, key_head_, j));
      std::copy_n(value_gradient_ + (j - begin_) * padded_, shape_.value_depth,
                  plan_.gradients.value.row(batch_, key_head_, j));
    }
  }

 private:
  static constexpr int64_t kRows = Family::kRows, kKeys = Family::kKeys;

  void visit(const Row& first, int64_t rows) {
    const int64_t width = RoundUpToLanes<T>(rows);
    const BlockScope scope(problem_.scope, first, rows, shape_.keys);
    const int64_t begin = std::max(begin_, scope.hull().begin);
    const int64_t end = std::min(end_, scope.hull().end);
    family_.load_queries(first, rows, width);
    if (begin < end) load_upstream(first, rows, width);
    for (int64_t key = begin; key < end; key += kKeys) {
      const int64_t keys = std::min(kKeys, end - key);
      const Cover cover = scope.cover(key, key + keys);
      if (cover == Cover::empty) continue;
      family_.scores(key, keys, width, weights_);
      bias_.add(first, rows, key, keys, width, weights_);
      if (cover == Cover::partial) MaskTile(scope, rows, key, keys, width, weights_);
      add_tile(first, key, keys, width);
      slope_gradient_ += bias_.differentiate(plan_.gradients, first, rows, key, keys, width, tile_);
    }
    family_.store_query_gradient(rows, width, plan_.query_gradient(chunk_));
  }

  // lse_i and delta_i = sum_e dc_ie c_ie - dlse_i, in lanes; a row without keys, and the lanes past
  // the last row, get weight 2^-inf = 0.
  void load_upstream(const Row& first, int64_t rows, int64_t width) {
    const View<const T>& grad = plan_.upstream.grad_context;
    const View<const T>& context = plan_.upstream.context;
    const T* from = grad.row(first.batch, first.head, first.query);
    const int64_t depth = shape_.value_depth;
    LoadPanel(from, grad.row_stride, rows, depth, panel_, width);
    LoadRows(from, grad.row_stride, rows, depth, width, rows_, padded_);
    const int64_t at = (first.batch * shape_.heads + first.head) * shape_.queries + first.query;
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    for (int64_t r = 0; r < width; ++r) {
      shift_[r] = kInfinity;
      delta_[r] = 0;
      if (r >= rows || plan_.upstream.lse[at + r] == -kInfinity) continue;
      shift_[r] = plan_.upstream.lse[at + r] * T(kLog2E);
      delta_[r] = DotProduct(grad.row(first.batch, first.head, first.query + r),
                             context.row(first.batch, first.head, first.query + r), depth);
      if (plan_.upstream.grad_lse != nullptr) delta_[r] -= plan_.upstream.grad_lse[at + r];
    }
  }

  void add_tile(const Row& first, int64_t key, int64_t keys, int64_t width) {
    const T* value = problem_.value.row(first.batch, key_head_, key);
    // c_i = sum_j p_ij v_j, so dp_ij = dc_i . v_j and dv_j = sum_i p_ij dc_i
    Multiply<T>(keys, width, shape_.value_depth, {value, problem_.value.row_stride, 1},
                {panel_, width}, false, {tile_, width});
    differentiate(keys, width);
    Multiply<T>(keys, padded_, width, {weights_, width, 1}, {rows_, padded_}, true,
                {value_gradient_ + (key - begin_) * padded_, padded_});
    family_.add(tile_, key, key - begin_, keys, width);
  }

  // p_ij = exp(s_ij - lse_i), so ds_ij = p_ij (dp_ij - delta_i); scores become weights and weight
  // gradients score gradients, both in place.
  void differentiate(int64_t keys, int64_t width) {
    const Tag<T> d;
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto shift = hn::Load(d, shift_ + lane), delta = hn::Load(d, delta_ + lane);
      for (int64_t j = 0; j < keys; ++j) {
        T* weight = weights_ + j * width + lane;
        T* gradient = tile_ + j * width + lane;
        const auto p = Exp2<T>(hn::Sub(hn::Load(d, weight), shift));
        hn::Store(p, d, weight);
        hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, gradient), delta)), d, gradient);
      }
    }
  }

  const BackwardPlan<T>& plan_;
  const Problem<T>& problem_;
  const Shape& shape_;
  int64_t chunk_, batch_, key_head_, begin_, end_, padded_;
  Family family_;
  TileBias<T> bias_;
  T slope_gradient_ = 0;
  T* weights_;         // [keys][width] scores, then weights
  T* tile_;            // [keys][width] dp, then ds
  T* panel_;           // [value_depth][width] dc
  T* rows_;            // [width][padded] dc
  T* shift_;           // [width] lse in units of log2
  T* delta_;           // [width]
  T* value_gradient_;  // [chunk_keys][padded]
};

template <class T>
void Backward(const BackwardPlan<T>& plan, int64_t task, Arena<T>& arena) {
  switch (plan.problem->score.family) {
    case Family::dot:
      return BackwardChunk<T, DotGradients<T>>(plan, task, arena).run();
    case Family::additive:
      return BackwardChunk<T, AdditiveGradients<T>>(plan, task, arena).run();
    default:
      return;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
