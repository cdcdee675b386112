#if defined(ATTEND_KERNELS_RECURRENCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_RECURRENCE_INL_H_
#undef ATTEND_KERNELS_RECURRENCE_INL_H_
#else
#define ATTEND_KERNELS_RECURRENCE_INL_H_
#endif

#include <cmath>

#include "attend/kernels/cpu/matmul-inl.h"
#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/recurrence_plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

template <class T>
HWY_INLINE T SumLanes(Vec<T> x) {
  return hn::GetLane(hn::SumOfLanes(Tag<T>(), x));
}

// One chunk of n tokens. G_i is the sum of the decays of tokens 1 to i of the chunk.
//
//   A_ij = q_i . (e^(G_i - G_j) k_j) for j <= i      B_ij = k_i . (e^(G_i - G_j) k_j) for j < i.
//   U_i = b_i (V_i - (e^(G_i) k_i) S - sum_j B_ij U_j), without the delta rule b_i V_i.
//   O_i = (e^(G_i) q_i) S + sum_j A_ij U_j.
//   S <- e^(G_n) S + sum_j (e^(G_n - G_j) k_j) U_j^T.
//
// Every exponent is a sum of decays and at most 0; the factors are products of e^(g_t). Rows have
// whole vectors; columns after the last are 0.
template <class T>
class RecurrenceChunk {
 public:
  RecurrenceChunk(const RecurrencePlan<T>& plan, const RecurrenceTokens<T>& tokens, Arena<T>& arena)
      : plan_(plan),
        tokens_(tokens),
        depth(plan.shape.depth),
        columns(RoundUpToLanes<T>(depth)),
        value_columns(RoundUpToLanes<T>(plan.shape.value_depth)),
        pairs(RoundUpToLanes<T>(plan.chunk)) {
    const int64_t rows = plan.chunk;
    query = arena.take(rows * columns);
    key = arena.take(rows * columns);
    value = arena.take(rows * value_columns);
    update = arena.take(rows * value_columns);
    strength = arena.take(rows);
    by_query = arena.take(rows * pairs);
    by_key = arena.take(rows * pairs);
    // Loops over vectors also read the rows of other layouts.
    panel = arena.take(std::max(columns, value_columns) * pairs);
    norms = arena.take(2 * rows);
    query_in = query, key_in = key_out = key;
    if (plan.shape.decay_depth == 0) return;
    decay_columns = plan.shape.decay_depth == 1 ? 1 : columns;
    factor = arena.take(RoundUpToLanes<T>(rows * decay_columns));
    since_start = arena.take(rows * decay_columns);
    until_end = arena.take(rows * decay_columns);
    query_in = arena.take(rows * columns);
    key_in = arena.take(rows * columns);
    key_out = arena.take(rows * columns);
    ratio = arena.take(rows * pairs);
  }

  bool decays() const { return decay_columns > 0; }
  bool decays_per_row() const { return decay_columns > 1; }

  // Reads the tokens [first, first + rows) of the task.
  void load(int64_t first, int64_t rows) {
    load_keys(first, rows);
    load_queries(first);
    load_values(first);
  }

  // Reads keys, strengths and decays; normalises and scales keys.
  void load_keys(int64_t first, int64_t rows) {
    n = rows;
    const auto& t = tokens_;
    const int64_t from = t.first + first;
    plan_.key.load(t.batch, t.key_head, from, n, depth, key, columns);
    ClearPadding(key, depth, columns);
    if (plan_.normalise) Normalise(key, norms + n);
    for (int64_t i = 0; i < n; ++i)
      strength[i] =
          plan_.strength.data == nullptr ? T(1) : *plan_.strength.row(t.batch, t.head, from + i);
    if (!decays()) return;
    LoadDecays(from);
    ScaleRows(since_start, key, key_in);
    ScaleRows(until_end, key, key_out);
  }

  // Reads, normalises and scales the queries of the tokens of load_keys().
  void load_queries(int64_t first) {
    const auto& t = tokens_;
    plan_.query.load(t.batch, t.key_head, t.first + first, n, depth, query, columns);
    ClearPadding(query, depth, columns);
    if (plan_.normalise) Normalise(query, norms);
    if (plan_.scale != 1) ScaleInPlace(query, n * columns, plan_.scale);
    if (decays()) ScaleRows(since_start, query, query_in);
  }

  // Reads the values of the tokens of load_keys().
  void load_values(int64_t first) {
    const auto& t = tokens_;
    plan_.value.load(t.batch, t.head, t.first + first, n, plan_.shape.value_depth, value,
                     value_columns);
    ClearPadding(value, plan_.shape.value_depth, value_columns);
  }

  // Makes products with the state fetch the rows of the tokens [first, first + rows) of the task.
  void fetch(int64_t first, int64_t rows, const StoredRows<T>& values) {
    const auto& t = tokens_;
    plan_.query.fetch(t.batch, t.key_head, t.first + first, rows, depth, ahead);
    plan_.key.fetch(t.batch, t.key_head, t.first + first, rows, depth, ahead);
    values.fetch(t.batch, t.head, t.first + first, rows, plan_.shape.value_depth, ahead);
  }

  // Computes A and, with the delta rule, B. Entries above the diagonal are 0.
  void find_pairs() {
    if (decays_per_row()) return FindPairsByRow();
    if (decays()) FindRatios();
    LoadPanel(key, columns, n, depth, panel, pairs);
    Multiply<T>(n, pairs, depth, {query, columns, 1}, {panel, pairs}, false, {by_query, pairs});
    Lower(by_query, 1);
    if (!plan_.delta) return;
    Multiply<T>(n, pairs, depth, {key, columns, 1}, {panel, pairs}, false, {by_key, pairs});
    Lower(by_key, 0);
  }

  // Computes U from the state before the chunk; `unscaled`: U without the strengths, or null.
  void find_updates(const T* state, T* unscaled = nullptr) {
    if (!plan_.delta) {
      std::copy_n(value, n * value_columns, update);
      if (unscaled != nullptr) std::copy_n(value, n * value_columns, unscaled);
      if (plan_.strength.data != nullptr) ScaleUpdates();
      return;
    }
    Multiply<T>(n, value_columns, depth, {key_in, columns, 1}, {state, value_columns}, false,
                {update, value_columns}, &ahead);
    const Tag<T> d;
    for (int64_t a = 0; a < n * value_columns; a += kLanes<T>)
      hn::Store(hn::Sub(hn::Load(d, value + a), hn::Load(d, update + a)), d, update + a);
    Solve(unscaled);
  }

  // Reads U without the strengths, which forward kept, and computes U.
  void load_updates(int64_t first, T* unscaled) {
    const auto& t = tokens_;
    plan_.kept_updates.load(t.batch, t.head, t.first + first, n, plan_.shape.value_depth, unscaled,
                            value_columns);
    ClearPadding(unscaled, plan_.shape.value_depth, value_columns);
    std::copy_n(unscaled, n * value_columns, update);
    ScaleUpdates();
  }

  // output = O, [n, value_columns]
  void find_output(const T* state, T* output) {
    Multiply<T>(n, value_columns, depth, {query_in, columns, 1}, {state, value_columns}, false,
                {output, value_columns}, &ahead);
    Multiply<T>(n, value_columns, n, {by_query, pairs, 1}, {update, value_columns}, true,
                {output, value_columns});
  }

  // after = the state at the end of the chunk; may be `state`.
  void advance(const T* state, T* after) {
    ScaleState(state, after);
    Multiply<T>(depth, value_columns, n, {key_out, 1, columns}, {update, value_columns}, true,
                {after, value_columns}, &ahead);
  }

  // scaled = e^(G_n) state; may be `state`.
  void ScaleState(const T* state, T* scaled) const {
    const Tag<T> d;
    if (!decays() && state == scaled) return;
    const T* last = decays() ? since_start + (n - 1) * decay_columns : nullptr;
    for (int64_t a = 0; a < depth; ++a) {
      const auto decay = Set<T>(!decays() ? T(1) : last[decay_columns == 1 ? 0 : a]);
      for (int64_t c = a * value_columns; c < (a + 1) * value_columns; c += kLanes<T>)
        hn::Store(hn::Mul(decay, hn::Load(d, state + c)), d, scaled + c);
    }
  }

  // to_i = factors_i * from_i, by the factors of a token or of each row of the state.
  void ScaleRows(const T* factors, const T* from, T* to) const {
    const Tag<T> d;
    for (int64_t i = 0; i < n; ++i) {
      const T* f = factors + i * decay_columns;
      for (int64_t a = 0; a < columns; a += kLanes<T>) {
        const auto x = decay_columns == 1 ? Set<T>(f[0]) : hn::Load(d, f + a);
        hn::Store(hn::Mul(x, hn::Load(d, from + i * columns + a)), d, to + i * columns + a);
      }
    }
  }

 private:
  const RecurrencePlan<T>& plan_;
  const RecurrenceTokens<T>& tokens_;

  void ClearPadding(T* rows, int64_t used, int64_t width) const {
    if (used == width) return;
    for (int64_t i = 0; i < n; ++i)
      std::fill(rows + i * width + used, rows + (i + 1) * width, T(0));
  }

  void ScaleUpdates() {
    for (int64_t i = 0; i < n; ++i)
      ScaleInPlace(update + i * value_columns, value_columns, strength[i]);
  }

  // Keeps 1 / sqrt(x . x + epsilon) of each row for backward.
  void Normalise(T* rows, T* inverse) const {
    const Tag<T> d;
    for (int64_t i = 0; i < n; ++i) {
      auto sum = hn::Zero(d);
      for (int64_t a = 0; a < columns; a += kLanes<T>) {
        const auto x = hn::Load(d, rows + i * columns + a);
        sum = hn::MulAdd(x, x, sum);
      }
      inverse[i] = T(1) / std::sqrt(SumLanes<T>(sum) + plan_.epsilon);
      ScaleInPlace(rows + i * columns, columns, inverse[i]);
    }
  }

  void LoadDecays(int64_t from) {
    const int64_t used = plan_.shape.decay_depth, width = decay_columns, count = n * width;
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(plan_.decay.row(tokens_.batch, tokens_.head, from + i), used, factor + i * width);
      std::fill(factor + i * width + used, factor + (i + 1) * width, T(0));
    }
    std::fill(factor + count, factor + RoundUpToLanes<T>(count), T(0));
    for (int64_t a = 0; a < count; a += kLanes<T>)
      hn::Store(Decayed(hn::Load(Tag<T>(), factor + a)), Tag<T>(), factor + a);
    std::copy_n(factor, width, since_start);
    std::fill(until_end + count - width, until_end + count, T(1));
    for (int64_t a = width; a < count; ++a) since_start[a] = since_start[a - width] * factor[a];
    for (int64_t a = count - width - 1; a >= 0; --a)
      until_end[a] = until_end[a + width] * factor[a + width];
  }

  // e^g; 0 below the smallest normal number.
  static HWY_INLINE Vec<T> Decayed(Vec<T> g) {
    constexpr T kLowest = std::is_same_v<T, float> ? T(-87) : T(-708);
    const auto power = ExpOfTwice<T>(hn::Mul(Clamp<T>(g, -kLowest), Set<T>(0.5)), Set<T>(0));
    return hn::IfThenElseZero(hn::Not(hn::Lt(g, Set<T>(kLowest))), power);
  }

  // ratio_ij = e^(G_i - G_j) for j <= i, 0 above the diagonal
  void FindRatios() {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) ratio[i * pairs + j] = ratio[(i - 1) * pairs + j] * factor[i];
      ratio[i * pairs + i] = 1;
      std::fill(ratio + i * pairs + i + 1, ratio + (i + 1) * pairs, T(0));
    }
  }

  // Multiplies row i by the ratios, and sets it to 0 from column i + own on.
  void Lower(T* matrix, int64_t own) const {
    for (int64_t i = 0; i < n; ++i) {
      T* row = matrix + i * pairs;
      if (decays())
        for (int64_t j = 0; j < i; ++j) row[j] *= ratio[i * pairs + j];
      std::fill(row + i + own, row + pairs, T(0));
    }
  }

  void FindPairsByRow() {
    const Tag<T> d;
    T* weighted = panel;
    for (int64_t j = 0; j < n; ++j) {
      std::copy_n(key + j * columns, columns, weighted);
      for (int64_t i = j; i < n; ++i) {
        auto query_sum = hn::Zero(d), key_sum = hn::Zero(d);
        for (int64_t a = 0; a < columns; a += kLanes<T>) {
          auto w = hn::Load(d, weighted + a);
          if (i > j) {
            w = hn::Mul(w, hn::Load(d, factor + i * columns + a));
            hn::Store(w, d, weighted + a);
          }
          query_sum = hn::MulAdd(w, hn::Load(d, query + i * columns + a), query_sum);
          key_sum = hn::MulAdd(w, hn::Load(d, key + i * columns + a), key_sum);
        }
        by_query[i * pairs + j] = SumLanes<T>(query_sum);
        by_key[i * pairs + j] = SumLanes<T>(key_sum);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      std::fill(by_query + i * pairs + i + 1, by_query + (i + 1) * pairs, T(0));
      std::fill(by_key + i * pairs + i, by_key + (i + 1) * pairs, T(0));
    }
  }

  // U_i = b_i (X_i - sum_(j < i) B_ij U_j) in place of X.
  void Solve(T* unscaled) {
    int64_t c = 0;
    for (; c + 4 * kLanes<T> <= value_columns; c += 4 * kLanes<T>) SolveColumns<4>(c, unscaled);
    for (; c < value_columns; c += kLanes<T>) SolveColumns<1>(c, unscaled);
  }

  template <int kV>
  void SolveColumns(int64_t c, T* unscaled) {
    const Tag<T> d;
    for (int64_t i = 0; i < n; ++i) {
      T* const to = update + i * value_columns + c;
      Vec<T> sum[kV];
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) sum[v] = hn::Load(d, to + v * kLanes<T>);
      for (int64_t j = 0; j < i; ++j) {
        const auto b = Set<T>(by_key[i * pairs + j]);
        const T* u = update + j * value_columns + c;
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v)
          sum[v] = hn::NegMulAdd(b, hn::Load(d, u + v * kLanes<T>), sum[v]);
      }
      const auto b = Set<T>(strength[i]);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) {
        if (unscaled != nullptr)
          hn::Store(sum[v], d, unscaled + i * value_columns + c + v * kLanes<T>);
        hn::Store(hn::Mul(b, sum[v]), d, to + v * kLanes<T>);
      }
    }
  }

 public:
  int64_t n = 0;
  const int64_t depth, columns, value_columns, pairs;
  int64_t decay_columns = 0;
  T *query, *key;            // [n, columns]: normalised; queries times the scale
  T *query_in, *key_in;      // times e^(G_i)
  T* key_out;                // times e^(G_n - G_i)
  T *value, *update;         // V and U, [n, value_columns]
  T* strength;               // b, [n]
  T *by_query, *by_key;      // A and B, [n, pairs]
  T* panel;                  // scratch
  T* norms;                  // [2, n] of queries and keys, if normalised
  T* factor = nullptr;       // e^(g_i), [n, decay_columns]
  T* since_start = nullptr;  // e^(G_i)
  T* until_end = nullptr;    // e^(G_n - G_i)
  T* ratio = nullptr;        // e^(G_i - G_j), [n, pairs], with one decay per token
  RowsAhead ahead;           // fetched by products with the state
};

// Copies a contiguous [depth, value_depth] state to whole vectors; null: 0.
template <class T>
void LoadState(const RecurrencePlan<T>& plan, const T* from, T* state, int64_t columns) {
  const int64_t depth = plan.shape.depth, used = plan.shape.value_depth;
  if (from == nullptr)
    std::fill_n(state, depth * columns, T(0));
  else
    LoadRows(from, used, depth, used, depth, state, columns);
}

template <class T>
void StoreState(const RecurrencePlan<T>& plan, const T* state, int64_t columns, T* to) {
  for (int64_t a = 0; a < plan.shape.depth; ++a)
    std::copy_n(state + a * columns, plan.shape.value_depth, to + a * plan.shape.value_depth);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
