#include "attend/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attend/kernels/check.h"
#include "attend/kernels/cpu/driver-inl.h"
#include "attend/kernels/cpu/edge_driver-inl.h"

namespace attend::kernels {
namespace {

// Number of splits of the keys, which share the work for few queries and many keys, as in decoding.
// As for the chunks of backward, it depends only on the shape.
int64_t key_splits(const Shape& s, int64_t blocks, Normaliser normaliser) {
  if (is_sparse(normaliser)) return 1;
  constexpr int64_t kTasks = 8, kLeastKeys = 1024;
  const int64_t tasks = std::max<int64_t>(1, s.batch * s.heads * blocks);
  return std::max<int64_t>(1, std::min((kTasks + tasks - 1) / tasks, s.keys / kLeastKeys));
}

// An lse as the sum of two numbers, see RowShifts. -inf without keys.
template <class T>
struct SplitLse {
  T reference, offset;

  T sum() const { return reference + offset; }
};

// Merges the softmax of a row over two sets of keys: context becomes the context over both. NaN in
// one set reaches context and lse.
template <class T>
SplitLse<T> merge_row(const SplitLse<T>& mine, const SplitLse<T>& theirs, int64_t depth,
                      const T* add, T* context) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (theirs.sum() == -kInfinity) return mine;
  if (mine.sum() == -kInfinity) {
    std::copy_n(add, depth, context);
    return theirs;
  }
  const T top = std::max(mine.reference, theirs.reference);
  const T keep_log = mine.reference - top + mine.offset;
  const T take_log = theirs.reference - top + theirs.offset;
  const T high = std::max(keep_log, take_log);
  const T keep = std::exp(keep_log - high), take = std::exp(take_log - high), both = keep + take;
  for (int64_t e = 0; e < depth; ++e) context[e] = keep / both * context[e] + take / both * add[e];
  return {top, high + std::log(both)};
}

// The same for normalisers with weights that do not depend on other keys: contexts are added.
template <class T>
SplitLse<T> add_row(const SplitLse<T>& mine, const SplitLse<T>& theirs, int64_t depth, const T* add,
                    T* context) {
  for (int64_t e = 0; e < depth; ++e) context[e] += add[e];
  // The reference is 0, or -inf without keys; NaN is in the offsets.
  return {std::max(mine.reference, theirs.reference), mine.offset + theirs.offset};
}

// The same for stick-breaking, `theirs` with later keys. A reference is -ln of the rest after the
// keys.
template <class T>
SplitLse<T> break_row(const SplitLse<T>& mine, const SplitLse<T>& theirs, int64_t depth,
                      const T* add, T* context) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (theirs.reference == -kInfinity) return mine;
  const T left = std::exp(-theirs.reference);
  for (int64_t e = 0; e < depth; ++e) context[e] = left * context[e] + add[e];
  // The reference is -inf without keys.
  return {std::max<T>(mine.reference, 0) + theirs.reference, mine.offset + theirs.offset};
}

// Adds the floor of softpick to the divisor of a row.
template <class T>
void add_floor(SplitLse<T>& lse, int64_t depth, T* context) {
  if (lse.sum() == -std::numeric_limits<T>::infinity()) return;
  const T more = T(kSoftpickFloor) * std::exp(-lse.reference - lse.offset);
  for (int64_t e = 0; e < depth; ++e) context[e] /= 1 + more;
  lse.offset += std::log1p(more);
}

// Calls work(b, h, i, row) for each row of queries.
template <class Work>
void each_row(const Shape& s, const Work& work) {
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row)
    work(row / s.queries / s.heads, row / s.queries % s.heads, row % s.queries, row);
}

// Merges the splits one after another, in a fixed order.
template <class T>
void merge_splits(const ForwardPlan<T>& plan) {
  const Shape& s = plan.problem->shape;
  const Normaliser normaliser = plan.problem->normaliser;
  const auto join = sums_exponentials(normaliser) ? merge_row<T>
                    : is_ordered(normaliser)      ? break_row<T>
                                                  : add_row<T>;
  each_row(s, [&](int64_t b, int64_t h, int64_t i, int64_t row) {
    const auto lse_of = [&](int64_t split) -> SplitLse<T> {
      const RowShifts<T> lse = plan.split_lse(split);
      return {lse.reference[row], lse.offset[row]};
    };
    SplitLse<T> lse = lse_of(0);
    for (int64_t split = 1; split < plan.splits; ++split) {
      lse = join(lse, lse_of(split), s.value_depth, plan.split_context(split).row(b, h, i),
                 plan.result.context.row(b, h, i));
    }
    if (normaliser == Normaliser::softpick)
      add_floor(lse, s.value_depth, plan.result.context.row(b, h, i));
    if (is_ordered(normaliser)) lse.reference = std::min<T>(lse.reference, 0);
    if (plan.result.lse != nullptr) plan.result.lse[row] = lse.sum();
  });
}

int64_t query_blocks(const Shape& s) { return (s.queries + kForwardRows - 1) / kForwardRows; }

// Whether the contexts of blocks are final.
template <class T>
bool has_one_split(const Problem<T>& problem) {
  const Shape& s = problem.shape;
  return !edge_scope(problem.scope) && key_splits(s, query_blocks(s), problem.normaliser) == 1;
}

// rounded: also receives the context unless null; requires has_one_split.
template <class T>
void run_forward(const Problem<T>& problem, const Result<T>& result, const HalfKeys& half,
                 const BFloat16Plan& bfloat16, const View<BFloat16>& rounded, int threads) {
  if (const auto scope = edge_scope(problem.scope))
    return edge_forward(problem, *scope, result, threads);
  const Shape& s = problem.shape;
  AdditivePreparation<T> prepared(problem);
  if (!few_queries(s)) prepared.run(false, threads);
  const int64_t blocks = query_blocks(s);
  const int64_t splits = key_splits(s, blocks, problem.normaliser);
  const int64_t split_keys = (s.keys + splits - 1) / splits, rows = s.batch * s.heads * s.queries;
  Arena<T> partial;
  ForwardPlan<T> plan{&problem, prepared.plan(), result,  blocks,  splits, split_keys,
                      half,     bfloat16,        rounded, nullptr, {}};
  plan.half.reads_values = true;
  if (splits > 1) {
    plan.partial_context = partial.take((splits - 1) * rows * s.value_depth);
    plan.partial_lse = {partial.take(splits * rows), partial.take(splits * rows)};
  }
  const ForwardTask<T> forward = forward_task<T>();
  run_tasks<T>(plan.tasks(), threads,
               [&](int64_t task, Arena<T>& arena) { forward(plan, task, arena); });
  if (splits > 1) merge_splits(plan);
}

// For decoding: query heads that share a key head, each with one query that sees the first keys.
// Several of these heads become queries of one head, which reads each key once.
template <class S>
class SharedKeys {
 public:
  SharedKeys(const Problem<S>& problem, const Result<S>& result)
      : problem_(problem), result_(result) {
    const Shape& s = problem.shape;
    const int64_t together = heads_together(problem);
    if (together == 1 || !find_lengths()) return;
    problem_.shape.heads /= together;
    problem_.shape.queries = together;
    const auto fold = [&](auto& view) {
      view = {view.data, view.batch_stride, together * view.head_stride, view.head_stride};
    };
    fold(problem_.query);
    fold(result_.context);
    if (std::any_of(lengths_.begin(), lengths_.end(), [&](int64_t n) { return n < s.keys; }))
      problem_.scope = {{{KeyLengths{lengths_.data()}}}};
    else
      problem_.scope = {};
  }
  SharedKeys(const SharedKeys&) = delete;
  SharedKeys& operator=(const SharedKeys&) = delete;

  const Problem<S>& problem() const { return problem_; }
  const Result<S>& result() const { return result_; }

 private:
  // Properties that differ between heads cannot differ between queries of one head.
  static int64_t heads_together(const Problem<S>& p) {
    const auto& bias = p.bias;
    if (p.shape.queries != 1 || p.shape.heads <= p.shape.key_heads ||
        p.score.family != Family::dot || p.sinks != nullptr || p.alphas != nullptr ||
        p.dropout.probability > 0 || bias.dense.data != nullptr || bias.slopes != nullptr ||
        bias.relative.data != nullptr || bias.centres != nullptr || bias.query_sums != nullptr ||
        bias.query_products != nullptr || bias.key_products != nullptr)
      return 1;
    int64_t together = kFewQueries;
    while (p.shape.heads / p.shape.key_heads % together != 0) --together;
    return together;
  }

  // Whether each query sees keys 0 up to lengths_ of its batch entry.
  bool find_lengths() {
    for (int64_t b = 0; b < problem_.shape.batch; ++b) {
      const BlockScope scope(problem_.scope, {b, 0, 0}, 1, problem_.shape.keys);
      if (!scope.one_range()) return false;
      const auto [begin, end] = scope.row_range(0);
      if (begin > 0 && begin < end) return false;
      lengths_.push_back(begin < end ? end : 0);
    }
    return true;
  }

  std::vector<int64_t> lengths_;
  Problem<S> problem_;
  Result<S> result_;
};

// Few queries of the dot family read 16-bit keys and values directly: copies would cost more than
// the work.
template <class S>
bool reads_halves(const Problem<S>& problem) {
  return few_queries(problem.shape) && problem.score.family == Family::dot &&
         !edge_scope(problem.scope);
}

}  // namespace

template <class S>
void attention_forward(const Problem<S>& given, const Result<S>& to, int threads) {
  check(given, to);
  threads = worthwhile_threads(given.shape, threads);
  const SharedKeys<S> shared(given, to);
  const Problem<S>& problem = shared.problem();
  const Result<S>& result = shared.result();
  if constexpr (kIsHalf<S>) {
    Arena<float> arena;
    const bool direct = reads_halves(problem);
    const BFloat16Preparation bfloat16(problem, /*grad_context=*/nullptr, threads);
    Problem<float> wide =
        bfloat16.used() ? without_rows(problem) : widen_problem(problem, arena, threads, !direct);
    HalfKeys half;
    if (direct) {
      half = {reinterpret_cast<const uint16_t*>(problem.key.data),
              reinterpret_cast<const uint16_t*>(problem.value.data), std::is_same_v<S, BFloat16>};
      wide.key = {nullptr, problem.key.batch_stride, problem.key.head_stride,
                  problem.key.row_stride};
      wide.value = {nullptr, problem.value.batch_stride, problem.value.head_stride,
                    problem.value.row_stride};
    }
    const RowsOf rows = context_rows(problem.shape);
    const bool rounds = std::is_same_v<S, BFloat16> && has_one_split(wide);
    float* numbers = result.unrounded;
    if (numbers == nullptr && !rounds) numbers = arena.take(rows.size());
    const View<float> context = contiguous(numbers, rows.heads, rows.rows, rows.depth);
    View<BFloat16> rounded;
    if constexpr (std::is_same_v<S, BFloat16>) {
      if (rounds) rounded = result.context;
    }
    run_forward<float>(wide, {context, result.lse}, half, bfloat16.plan(), rounded, threads);
    if (!rounds) narrow_rows(rows, context, result.context, threads);
  } else {
    run_forward(problem, result, {}, {}, {}, threads);
  }
}

template <class T>
void merge(const Shape& s, const Result<T>& into, const Result<T>& other) {
  each_row(s, [&](int64_t b, int64_t h, int64_t i, int64_t row) {
    into.lse[row] = merge_row<T>({into.lse[row], 0}, {other.lse[row], 0}, s.value_depth,
                                 other.context.row(b, h, i), into.context.row(b, h, i))
                        .sum();
  });
}

template void attention_forward(const Problem<float>&, const Result<float>&, int);
template void attention_forward(const Problem<double>&, const Result<double>&, int);
template void attention_forward(const Problem<BFloat16>&, const Result<BFloat16>&, int);
template void attention_forward(const Problem<Float16>&, const Result<Float16>&, int);
template void merge(const Shape&, const Result<float>&, const Result<float>&);
template void merge(const Shape&, const Result<double>&, const Result<double>&);

}  // namespace attend::kernels
