#if defined(ATTEND_KERNELS_RECURRENCE_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_RECURRENCE_GRADIENT_INL_H_
#undef ATTEND_KERNELS_RECURRENCE_GRADIENT_INL_H_
#else
#define ATTEND_KERNELS_RECURRENCE_GRADIENT_INL_H_
#endif

#include <utility>

#include "attend/kernels/cpu/recurrence-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Gradients of one chunk, see RecurrenceChunk. dX is the gradient of X. dS begins as the gradient
// of the state after the chunk and ends as the gradient of the state before it.
//
// The gradient of decay g_t is the sum over all products that contain e^(g_t). Each product is
// added to its decays, so no large sums cancel.
template <class T>
class RecurrenceGradient {
 public:
  RecurrenceGradient(const RecurrencePlan<T>& plan, const RecurrenceTokens<T>& tokens,
                     RecurrenceChunk<T>& chunk, Arena<T>& arena)
      : plan_(plan), tokens_(tokens), x_(chunk) {
    const int64_t rows = plan.chunk, columns = x_.columns, value_columns = x_.value_columns;
    grad_output_ = arena.take(rows * value_columns);
    grad_update_ = arena.take(rows * value_columns);
    grad_value_ = arena.take(rows * value_columns);
    grad_strength_ = arena.take(rows);
    grad_query_ = arena.take(rows * columns);
    grad_key_ = arena.take(rows * columns);
    grad_key_out_ = arena.take(rows * columns);
    by_query_ = arena.take(rows * x_.pairs);
    by_key_ = arena.take(rows * x_.pairs);
    columns_of_state_ = arena.take(plan.shape.value_depth * columns);
    if (!x_.decays()) return;
    grad_decay_ = arena.take((rows + 1) * x_.decay_columns);
    starts_ = arena.take(rows * x_.decay_columns);
    ends_ = arena.take(rows * x_.decay_columns);
  }

  // Makes run() fetch the rows that it writes, and gradients of outputs of the chunk before.
  void fetch(int64_t first) {
    const auto& t = tokens_;
    const int64_t from = t.first + first, value_depth = plan_.shape.value_depth;
    plan_.grad_query.fetch(t.batch, t.head, from, x_.n, x_.depth, x_.ahead);
    plan_.grad_key.fetch(t.batch, t.head, from, x_.n, x_.depth, x_.ahead);
    plan_.grad_value.fetch(t.batch, t.head, from, x_.n, value_depth, x_.ahead);
    plan_.grad_output.fetch(t.batch, t.head, from - plan_.chunk,
                            first < plan_.chunk ? 0 : plan_.chunk, value_depth, x_.ahead);
  }

  // Computes and stores the gradients of the tokens [first, first + n). `state`: S before the
  // chunk, `unscaled`: U without the strengths.
  void run(int64_t first, const T* state, const T* unscaled, T* grad_state) {
    const auto& t = tokens_;
    const int64_t from = t.first + first, value_depth = plan_.shape.value_depth;
    plan_.grad_output.load(t.batch, t.head, from, x_.n, value_depth, grad_output_,
                           x_.value_columns);
    if (value_depth < x_.value_columns)
      for (int64_t i = 0; i < x_.n; ++i)
        std::fill(grad_output_ + i * x_.value_columns + value_depth,
                  grad_output_ + (i + 1) * x_.value_columns, T(0));
    FindUpdateGradients(grad_state, unscaled);
    FindPairGradients();
    FindStateGradients(state, grad_state);
    AddPairGradients();
    if (plan_.scale != 1) ScaleInPlace(grad_query_, x_.n * x_.columns, plan_.scale);
    if (plan_.normalise) {
      // Normalised queries were multiplied by the scale.
      UndoNormalise(x_.query, x_.norms, T(1) / plan_.scale, grad_query_);
      UndoNormalise(x_.key, x_.norms + x_.n, T(1), grad_key_);
    }
    Write(from);
  }

 private:
  const RecurrencePlan<T>& plan_;
  const RecurrenceTokens<T>& tokens_;
  RecurrenceChunk<T>& x_;
  T *grad_output_, *grad_update_, *grad_value_, *grad_strength_;
  T *grad_query_, *grad_key_, *grad_key_out_;
  T *by_query_, *by_key_;  // dA and dB
  T* columns_of_state_;
  T* grad_decay_ = nullptr;
  T *starts_ = nullptr, *ends_ = nullptr;  // products that begin or end at the chunk's borders

  // dU = A^T dO + (e^(G_n - G_j) k_j) dS, then dV and db, with the delta rule from the last token
  // to the first: dV_j = b_j (dU_j - sum_(i > j) B_ij dV_i).
  void FindUpdateGradients(const T* grad_state, const T* unscaled) {
    const int64_t n = x_.n, width = x_.value_columns;
    Multiply<T>(n, width, n, {x_.by_query, 1, x_.pairs}, {grad_output_, width}, false,
                {grad_update_, width});
    Multiply<T>(n, width, x_.depth, {x_.key_out, x_.columns, 1}, {grad_state, width}, true,
                {grad_update_, width}, &x_.ahead);
    int64_t c = 0;
    for (; c + 4 * kLanes<T> <= width; c += 4 * kLanes<T>) FindValueGradients<4>(c);
    for (; c < width; c += kLanes<T>) FindValueGradients<1>(c);
    const Tag<T> d;
    for (int64_t j = 0; j < n; ++j) {
      auto dot = hn::Zero(d);
      for (int64_t a = j * width; a < (j + 1) * width; a += kLanes<T>)
        dot = hn::MulAdd(hn::Load(d, grad_update_ + a), hn::Load(d, unscaled + a), dot);
      grad_strength_[j] = SumLanes<T>(dot);
    }
  }

  // Subtracts sum_(i > j) B_ij dV_i from dU_j and computes dV_j in kV vectors of columns.
  template <int kV>
  void FindValueGradients(int64_t c) {
    const Tag<T> d;
    const int64_t n = x_.n, width = x_.value_columns;
    for (int64_t j = n - 1; j >= 0; --j) {
      T* const to = grad_update_ + j * width + c;
      Vec<T> sum[kV];
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) sum[v] = hn::Load(d, to + v * kLanes<T>);
      for (int64_t i = j + 1; plan_.delta && i < n; ++i) {
        const auto b = Set<T>(x_.by_key[i * x_.pairs + j]);
        const T* const later = grad_value_ + i * width + c;
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v)
          sum[v] = hn::NegMulAdd(b, hn::Load(d, later + v * kLanes<T>), sum[v]);
      }
      const auto strength = Set<T>(x_.strength[j]);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) {
        hn::Store(sum[v], d, to + v * kLanes<T>);
        hn::Store(hn::Mul(strength, sum[v]), d, grad_value_ + j * width + c + v * kLanes<T>);
      }
    }
  }

  // dA_ij = dO_i . U_j and dB_ij = -dV_i . U_j, 0 above the diagonal.
  void FindPairGradients() {
    const int64_t n = x_.n, width = x_.value_columns, used = plan_.shape.value_depth;
    LoadPanel(x_.update, width, n, used, x_.panel, x_.pairs);
    Multiply<T>(n, x_.pairs, used, {grad_output_, width, 1}, {x_.panel, x_.pairs}, false,
                {by_query_, x_.pairs});
    if (plan_.delta)
      Multiply<T>(n, x_.pairs, used, {grad_value_, width, 1}, {x_.panel, x_.pairs}, false,
                  {by_key_, x_.pairs});
    for (int64_t i = 0; i < n; ++i) {
      T *query_row = by_query_ + i * x_.pairs, *key_row = by_key_ + i * x_.pairs;
      std::fill(query_row + i + 1, query_row + x_.pairs, T(0));
      for (int64_t j = 0; j < i; ++j) key_row[j] = plan_.delta ? -key_row[j] : T(0);
      std::fill(key_row + i, key_row + x_.pairs, T(0));
    }
  }

  // Computes the gradients of queries, keys, decays and the state by products with the state.
  void FindStateGradients(const T* state, T* grad_state) {
    const int64_t n = x_.n, columns = x_.columns, width = x_.value_columns;
    const int64_t used = plan_.shape.value_depth;
    LoadPanel(grad_state, width, x_.depth, used, columns_of_state_, columns);
    Multiply<T>(n, columns, used, {x_.update, width, 1}, {columns_of_state_, columns}, false,
                {grad_key_out_, columns}, &x_.ahead);
    LoadPanel(state, width, x_.depth, used, columns_of_state_, columns);
    Multiply<T>(n, columns, used, {grad_output_, width, 1}, {columns_of_state_, columns}, false,
                {grad_query_, columns}, &x_.ahead);
    if (plan_.delta) {
      Multiply<T>(n, columns, used, {grad_value_, width, 1}, {columns_of_state_, columns}, false,
                  {grad_key_, columns}, &x_.ahead);
      ScaleInPlace(grad_key_, n * columns, T(-1));
    } else {
      std::fill_n(grad_key_, n * columns, T(0));
    }
    if (x_.decays()) {
      FindBorderProducts(state, grad_state);
      x_.ScaleRows(x_.since_start, grad_query_, grad_query_);
      x_.ScaleRows(x_.since_start, grad_key_, grad_key_);
      x_.ScaleRows(x_.until_end, grad_key_out_, grad_key_out_);
    }
    const Tag<T> d;
    for (int64_t a = 0; a < n * columns; a += kLanes<T>)
      hn::Store(hn::Add(hn::Load(d, grad_key_ + a), hn::Load(d, grad_key_out_ + a)), d,
                grad_key_ + a);
    x_.ScaleState(grad_state, grad_state);
    Multiply<T>(x_.depth, width, n, {x_.query_in, 1, columns}, {grad_output_, width}, true,
                {grad_state, width}, &x_.ahead);
    if (!plan_.delta) return;
    ScaleInPlace(grad_value_, n * width, T(-1));
    Multiply<T>(x_.depth, width, n, {x_.key_in, 1, columns}, {grad_value_, width}, true,
                {grad_state, width}, &x_.ahead);
    ScaleInPlace(grad_value_, n * width, T(-1));
  }

  // starts_i: products of e^(G_i), ends_i: products of e^(G_n - G_i), and the product of e^(G_n) in
  // the last row of grad_decay_.
  void FindBorderProducts(const T* state, const T* grad_state) {
    const Tag<T> d;
    const int64_t n = x_.n, columns = x_.columns, width = x_.value_columns;
    const bool single = x_.decay_columns == 1;
    for (int64_t i = 0; i < n; ++i) {
      auto start_sum = hn::Zero(d), end_sum = hn::Zero(d);
      for (int64_t a = i * columns; a < (i + 1) * columns; a += kLanes<T>) {
        auto start = hn::Mul(hn::Load(d, grad_query_ + a), hn::Load(d, x_.query_in + a));
        start = hn::MulAdd(hn::Load(d, grad_key_ + a), hn::Load(d, x_.key_in + a), start);
        const auto end = hn::Mul(hn::Load(d, grad_key_out_ + a), hn::Load(d, x_.key_out + a));
        start_sum = hn::Add(start_sum, start);
        end_sum = hn::Add(end_sum, end);
        if (single) continue;
        hn::Store(start, d, starts_ + a);
        hn::Store(end, d, ends_ + a);
      }
      if (!single) continue;
      starts_[i] = SumLanes<T>(start_sum);
      ends_[i] = SumLanes<T>(end_sum);
    }
    const T* whole = x_.since_start + (n - 1) * x_.decay_columns;
    T* const both = grad_decay_ + n * x_.decay_columns;
    std::fill_n(both, x_.decay_columns, T(0));
    for (int64_t a = 0; a < x_.depth; ++a) {
      auto sum = hn::Zero(d);
      for (int64_t c = a * width; c < (a + 1) * width; c += kLanes<T>)
        sum = hn::MulAdd(hn::Load(d, state + c), hn::Load(d, grad_state + c), sum);
      both[single ? 0 : a] += whole[single ? 0 : a] * SumLanes<T>(sum);
    }
  }

  void AddPairGradients() {
    if (x_.decays()) FindDecayGradients();
    if (x_.decays_per_row()) return AddPairGradientsByRow();
    const int64_t n = x_.n, columns = x_.columns, pairs = x_.pairs;
    if (x_.decays()) {
      AddDecayGradients();
      const Tag<T> d;
      for (int64_t p = 0; p < n * pairs; p += kLanes<T>) {
        const auto ratio = hn::Load(d, x_.ratio + p);
        hn::Store(hn::Mul(ratio, hn::Load(d, by_query_ + p)), d, by_query_ + p);
        hn::Store(hn::Mul(ratio, hn::Load(d, by_key_ + p)), d, by_key_ + p);
      }
    }
    const auto add = [&](const Broadcast<T>& left, const T* rows, T* to) HWY_ATTR {
      Multiply<T>(n, columns, n, left, {rows, columns}, true, {to, columns});
    };
    add({by_query_, pairs, 1}, x_.key, grad_query_);
    add({by_query_, 1, pairs}, x_.query, grad_key_);
    if (!plan_.delta) return;
    add({by_key_, pairs, 1}, x_.key, grad_key_);
    add({by_key_, 1, pairs}, x_.key, grad_key_);
  }

  // Decay t is in the products from the start to i >= t, from j < t to the end, and in e^(G_n).
  void FindDecayGradients() {
    const int64_t n = x_.n, width = x_.decay_columns;
    for (int64_t a = 0; a < width; ++a) {
      T sum = 0;
      for (int64_t t = n - 1; t >= 0; --t)
        grad_decay_[t * width + a] = sum += starts_[t * width + a];
      sum = grad_decay_[n * width + a];
      for (int64_t t = 0; t < n; ++t) {
        grad_decay_[t * width + a] += sum;
        sum += ends_[t * width + a];
      }
    }
  }

  // Decay t is in the products of the pairs j < t <= i.
  void AddDecayGradients() {
    const int64_t n = x_.n, pairs = x_.pairs;
    for (int64_t i = 1; i < n; ++i) {
      T sum = 0;
      for (int64_t t = 1; t <= i; ++t) {
        const int64_t p = i * pairs + t - 1;
        sum += by_query_[p] * x_.by_query[p];
        if (plan_.delta) sum += by_key_[p] * x_.by_key[p];
        grad_decay_[t] += sum;
      }
    }
  }

  // All of this with a decay of each row of the state, for one vector of rows after another.
  void AddPairGradientsByRow() {
    for (int64_t a = 0; a < x_.columns; a += kLanes<T>)
      for (int64_t j = 0; j < x_.n; ++j) {
        AddRightSides(j, a);
        AddLeftSides(j, a);
      }
  }

  // Adds to the gradients of the left sides of the pairs (i, j); keeps e^(G_i - G_j) k_j.
  HWY_INLINE void AddRightSides(int64_t j, int64_t a) {
    const Tag<T> d;
    auto right = hn::Load(d, x_.key + j * x_.columns + a);
    for (int64_t i = j; i < x_.n; ++i) {
      const int64_t place = i * x_.columns + a;
      if (i > j) right = hn::Mul(right, hn::Load(d, x_.factor + place));
      hn::Store(right, d, x_.panel + i * kLanes<T>);
      const auto by_query = Set<T>(by_query_[i * x_.pairs + j]);
      hn::Store(hn::MulAdd(by_query, right, hn::Load(d, grad_query_ + place)), d,
                grad_query_ + place);
      if (!plan_.delta) continue;
      const auto by_key = Set<T>(by_key_[i * x_.pairs + j]);
      hn::Store(hn::MulAdd(by_key, right, hn::Load(d, grad_key_ + place)), d, grad_key_ + place);
    }
  }

  // Adds to the gradients of key j and of the decays between j and i.
  HWY_INLINE void AddLeftSides(int64_t j, int64_t a) {
    const Tag<T> d;
    auto left = hn::Zero(d);
    for (int64_t i = x_.n - 1; i >= j; --i) {
      const int64_t place = i * x_.columns + a;
      const auto by_query = Set<T>(by_query_[i * x_.pairs + j]);
      left = hn::MulAdd(by_query, hn::Load(d, x_.query + place), left);
      if (plan_.delta) {
        const auto by_key = Set<T>(by_key_[i * x_.pairs + j]);
        left = hn::MulAdd(by_key, hn::Load(d, x_.key + place), left);
      }
      if (i == j) break;
      left = hn::Mul(left, hn::Load(d, x_.factor + place));
      const auto right = hn::Load(d, x_.panel + (i - 1) * kLanes<T>);
      hn::Store(hn::MulAdd(left, right, hn::Load(d, grad_decay_ + place)), d, grad_decay_ + place);
    }
    T* const to = grad_key_ + j * x_.columns + a;
    hn::Store(hn::Add(left, hn::Load(d, to)), d, to);
  }

  // For y = x / |x|, dx = (dy - (y . dy) y) / |x|. Rows hold y / factor.
  void UndoNormalise(const T* rows, const T* inverse, T factor, T* gradient) {
    const Tag<T> d;
    const auto unit = Set<T>(factor);
    for (int64_t i = 0; i < x_.n; ++i) {
      const T* y = rows + i * x_.columns;
      T* const to = gradient + i * x_.columns;
      auto sum = hn::Zero(d);
      for (int64_t a = 0; a < x_.columns; a += kLanes<T>)
        sum = hn::MulAdd(hn::Mul(unit, hn::Load(d, y + a)), hn::Load(d, to + a), sum);
      const auto dot = Set<T>(SumLanes<T>(sum)), scale = Set<T>(inverse[i]);
      for (int64_t a = 0; a < x_.columns; a += kLanes<T>) {
        const auto rest =
            hn::NegMulAdd(dot, hn::Mul(unit, hn::Load(d, y + a)), hn::Load(d, to + a));
        hn::Store(hn::Mul(scale, rest), d, to + a);
      }
    }
  }

  void Write(int64_t from) const {
    const auto& t = tokens_;
    plan_.grad_query.store(grad_query_, x_.columns, t.batch, t.head, from, x_.n, x_.depth);
    plan_.grad_key.store(grad_key_, x_.columns, t.batch, t.head, from, x_.n, x_.depth);
    plan_.grad_value.store(grad_value_, x_.value_columns, t.batch, t.head, from, x_.n,
                           plan_.shape.value_depth);
    for (int64_t i = 0; i < x_.n; ++i) {
      if (plan_.grad_strength.data != nullptr)
        *plan_.grad_strength.row(t.batch, t.head, from + i) = grad_strength_[i];
      if (plan_.grad_decay.data != nullptr)
        std::copy_n(grad_decay_ + i * x_.decay_columns, plan_.shape.decay_depth,
                    plan_.grad_decay.row(t.batch, t.head, from + i));
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
