#include <ATen/OpMathType.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "attend/base/error.h"
#include "attend/ops/axes-inl.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/linear-inl.h"
#include "attend/ops/linear_state.h"
#include "attend/ops/lower-inl.h"
#include "attend/ops/normalisers-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Within a chunk, products cost chunk (A + Dv) per query; products with the sums before it cost 2 A
// Dv. Both are about equal at depths of 64 to 128.
constexpr int64_t longest_chunk = 128;

// A scope for running sums: query i sees the keys j <= i + last that are in `keys`.
struct RunningScope {
  int64_t last;
  Tensor keys;  // bool [B or 1, 1, Tk or 1, 1]; undefined: all
};

Tensor mask_of(const Clause& key_clause, const LoweredSpec& spec, const at::Device& device) {
  Tensor mask = scope_mask(Scope{{key_clause}}, spec.batch, spec.heads, 1, spec.keys, device);
  while (mask.dim() < 4) mask = mask.unsqueeze(0);
  return mask.transpose(-2, -1);
}

std::optional<RunningScope> running_scope(const LoweredSpec& spec, const at::Device& device) {
  RunningScope scope{spec.keys, {}};
  if (spec.scope.any_of.empty()) return scope;
  if (spec.scope.any_of.size() > 1) return std::nullopt;
  Clause key_clause;
  key_clause.reserve(spec.scope.any_of[0].size());
  for (const ConditionPointer& condition : spec.scope.any_of[0]) {
    if (const auto last = condition->last_key(spec.queries)) {
      scope.last = std::min(scope.last, *last);
    } else if (condition->is_of_keys()) {
      key_clause.push_back(condition);
    } else {
      return std::nullopt;
    }
  }
  if (!key_clause.empty()) scope.keys = mask_of(key_clause, spec, device);
  return scope;
}

// Whether all queries see the same keys.
bool sees_alike(const RunningScope& scope, const LoweredSpec& spec) {
  return scope.last >= spec.keys - 1 || spec.queries == 0;
}

// Shift of a key that no query sees: below any other shift, but finite.
constexpr double no_shift = -1e30;

// Appends a column of ones, which sums the weights.
Tensor with_ones(const Tensor& value) {
  auto shape = value.sizes().vec();
  shape.back() = 1;
  return at::cat({value, at::ones(shape, value.options())}, -1);
}

// sum_j k_j v_j exp(shift_j), [..., A, E], divided by exp of the largest shift, [..., 1, 1].
struct Sums {
  Tensor sums, shift;
};

Sums sums_of(const Tensor& key, const Tensor& value, const Tensor& shift) {
  const Tensor top = shift.amax(-2, /*keepdim=*/true);
  return {at::matmul(key.transpose(-2, -1), value * (shift - top).exp()), top};
}

Sums joined(const Sums& a, const Sums& b) {
  const Tensor top = at::maximum(a.shift, b.shift);
  return {a.sums * (a.shift - top).exp() + b.sums * (b.shift - top).exp(), top};
}

// Converts [B, Hkv, T, n] to [B, Hkv, chunks, chunk, n], padded with `filling`; also with a fifth
// axis for the queries of a group.
Tensor in_chunks(const Tensor& x, int64_t chunk, double filling = 0) {
  const int64_t length = x.size(-2), chunks = (length + chunk - 1) / chunk;
  const Tensor whole =
      length % chunk == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, chunks * chunk - length}, filling);
  auto shape = x.sizes().vec();
  shape.back() = chunk;
  shape.end()[-2] = chunks;
  shape.push_back(x.size(-1));
  return whole.reshape(shape);
}

// Sums before each chunk, along a new axis 3; keys and values have an axis of 1 at 2.
Sums sums_before(const Tensor& key, const Tensor& value, const Tensor& shift, const Sums& before) {
  const int64_t chunks = key.size(3);
  Sums state = before;
  if (state.sums.defined()) {
    state = {before.sums.unsqueeze(2), before.shift.unsqueeze(2)};
  } else {
    state = {at::zeros({key.size(0), key.size(1), 1, key.size(5), value.size(5)}, key.options()),
             at::full({key.size(0), key.size(1), 1, 1, 1}, no_shift, key.options())};
  }
  std::vector<Tensor> sums = {state.sums}, shifts = {state.shift};
  if (chunks > 1) {
    const auto [own, own_shift] = sums_of(key, value, shift);
    for (int64_t c = 0; c + 1 < chunks; ++c) {
      state = joined(state, {own.select(3, c), own_shift.select(3, c)});
      sums.push_back(state.sums);
      shifts.push_back(state.shift);
    }
  }
  return {at::stack(sums, 3), at::stack(shifts, 3)};
}

// sum_{j <= i} (q_i . k_j) v_j exp(shift_j) plus the contribution of the sums `before`, divided by
// exp of the largest shift that a query sees. Queries [B, Hkv, G, T, A], keys [B, Hkv, T, A],
// values [B, Hkv, T, E], shifts [B, Hkv, T, 1] -> [B, Hkv, G, T, E] and [B, Hkv, 1, T, 1]. Each
// chunk is multiplied with itself and with the sums of earlier chunks.
Sums causal_sums(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& shift,
                 const Sums& before) {
  const int64_t length = query.size(3);
  const int64_t chunk = std::min(length, longest_chunk);
  const Tensor q = in_chunks(query, chunk);
  const Tensor k = in_chunks(key, chunk).unsqueeze(2), v = in_chunks(value, chunk).unsqueeze(2);
  const Tensor s = in_chunks(shift, chunk, no_shift).unsqueeze(2);
  const auto [states, state_shift] = sums_before(k, v, s, before);
  const Tensor top = at::maximum(std::get<0>(s.cummax(-2)), state_shift);
  const Tensor later = at::ones({chunk, chunk}, s.options().dtype(at::kBool)).triu(1);
  const Tensor factor = (s.transpose(-2, -1) - top).masked_fill(later, minus_infinity).exp();
  Tensor sums = at::matmul(at::matmul(q, k.transpose(-2, -1)) * factor, v);
  if (q.size(3) > 1 || before.sums.defined())
    sums = sums + at::matmul(q, states) * (state_shift - top).exp();
  return {sums.flatten(3, 4).narrow(3, 0, length), top.flatten(3, 4).narrow(3, 0, length)};
}

// Moves keys or values such that query i sees entries 0 ... i, padded with `filling`. Omits the
// first `last` keys, which every query sees.
Tensor aligned_with_queries(const Tensor& x, int64_t last, int64_t queries, double filling = 0) {
  const int64_t first = std::max<int64_t>(0, last), front = std::clamp<int64_t>(-last, 0, queries);
  const int64_t count = std::clamp<int64_t>(x.size(2) - first, 0, queries - front);
  return at::constant_pad_nd(x.narrow(2, first, count), {0, 0, front, queries - front - count},
                             filling);
}

// Groups query heads by the key head that they read.
Tensor grouped(const Tensor& query, int64_t key_heads) {
  return query.unflatten(1, {key_heads, query.size(1) / key_heads});
}

// Divides the sums of grouped queries by their normaliser.
AttentionResult normalised(const Sums& grouped_sums, const LoweredSpec& spec) {
  const Tensor sums = grouped_sums.sums.flatten(1, 2);
  const int64_t depth = sums.size(-1) - 1;
  const Tensor normaliser = sums.narrow(-1, depth, 1);
  const Tensor none_left = normaliser < least_sum(sums.scalar_type());
  const Tensor divisor = normaliser.masked_fill(none_left, 1.0);
  const Tensor shift = grouped(spec.query_shift, grouped_sums.sums.size(1)) + grouped_sums.shift;
  const Tensor lse = (divisor.log() + shift.flatten(1, 2)).masked_fill(none_left, minus_infinity);
  return {sums.narrow(-1, 0, depth).masked_fill(none_left, 0.0) / divisor, lse.squeeze(-1)};
}

// Inputs in the dtype of the arithmetic; keys out of scope are 0, values have a column of ones.
struct Inputs {
  Tensor query, key, value, shift;

  Inputs(const Parts& parts, const LoweredSpec& spec, const Tensor& keys_in_scope)
      : key(parts[part::key]), shift(spec.key_shift) {
    if (keys_in_scope.defined()) {
      const Tensor out = keys_in_scope.logical_not();
      key = key.masked_fill(out, 0.0);
      if (shift.size(2) == spec.keys) shift = shift.masked_fill(out, no_shift);
    }
    query = grouped(parts[part::query], key.size(1));
    if (spec.scale != 1) query = query * spec.scale;
    value = with_ones(parts[part::value].to(key.scalar_type()));
  }
};

// Largest number over one or two axes, without a gradient; 0 if an axis is empty or the number is
// -inf.
Tensor largest(const Tensor& x, at::IntArrayRef axes) {
  for (const int64_t axis : axes) {
    if (x.size(axis) > 0) continue;
    auto shape = x.sizes().vec();
    for (const int64_t lowered : axes) shape.end()[lowered] = 1;
    return at::zeros(shape, x.options());
  }
  const Tensor found = x.detach().amax(axes, /*keepdim=*/true);
  return found.masked_fill(found == minus_infinity, 0.0);
}

// Computes features from their logarithms, divided by the largest feature of a query and of a key.
void shift_logarithms(Tensor& query, Tensor& key, const Tensor& unseen, bool alike,
                      LoweredSpec& spec) {
  if (alike) {
    // Divides each feature by its maximum over the keys: no sum is then below 1.
    const Tensor seen = unseen.defined() ? key.masked_fill(unseen, minus_infinity) : key;
    const Tensor largest_features = largest(seen, {-2});
    query = query + repeat_heads(largest_features, spec.heads);
    key = key - largest_features;
    spec.key_shift = at::zeros({key.size(0), key.size(1), 1, 1}, key.options());
    // Unseen keys may be above 0; exp must not become infinite. The maximum of the others is 0, and
    // there the derivative of a clamp differs between LibTorch 2.15 and 1.13.
    if (unseen.defined()) key = key.masked_fill(unseen, 0.0);
  } else {
    spec.key_shift = largest(key, {-1});
    key = key - spec.key_shift;
  }
  spec.query_shift = largest(query, {-1});
  query = (query - spec.query_shift).exp();
  key = key.exp();
}

// Divides the caller's own features by the largest of a query and of a key or, if alike, of all
// keys.
void divide_features(Tensor& query, Tensor& key, const Tensor& unseen, bool alike,
                     LoweredSpec& spec) {
  const auto divide = [](Tensor& x, const Tensor& sizes, at::IntArrayRef axes) {
    const Tensor found = largest(sizes.detach().abs(), axes);
    const Tensor size = found.masked_fill(found < least_sum(x.scalar_type()), 1.0);
    x = x / size;
    return size.log();
  };
  const Tensor seen = unseen.defined() ? key.masked_fill(unseen, 0.0) : key;
  spec.key_shift = alike ? divide(key, seen, {-2, -1}) : divide(key, key, {-1});
  spec.query_shift = divide(query, query, {-1});
}

}  // namespace

Tensor key_shifts(const LoweredSpec& spec) {
  return repeat_heads(spec.key_shift, spec.heads).transpose(-2, -1);
}

bool shifts_features(const LoweredSpec& spec) {
  // A factor of a row cancels only if the scores are summed directly.
  return spec.normaliser->running_sums && !(spec.soft_cap > 0);
}

void shift_features(Parts& parts, LoweredSpec& spec, bool for_later_queries) {
  const bool logarithms = spec.score->features == Features::logarithms;
  Tensor &query = parts[part::query], &key = parts[part::key];
  const auto scope = running_scope(spec, key.device());
  const bool alike = !for_later_queries && scope && sees_alike(*scope, spec);
  Tensor unseen;
  if (scope && scope->keys.defined()) unseen = scope->keys.logical_not();
  query = query.to(at::toOpMathType(query.scalar_type()));
  key = key.to(query.scalar_type());
  logarithms ? shift_logarithms(query, key, unseen, alike, spec)
             : divide_features(query, key, unseen, alike, spec);
}

std::string not_running_sums_reason(const LoweredSpec& spec) {
  if (spec.soft_cap > 0) return "running sums hold no single scores, and soft_cap changes these";
  if (spec.dropout.probability > 0) return "running sums hold no single weight to drop";
  if (!running_scope(spec, at::kCPU))
    return "running sums follow the scopes all and causal, with key lengths, a prefix or a mask of "
           "keys; this scope is different";
  return {};
}

AttentionResult linear_attention(const Parts& parts, const LoweredSpec& spec) {
  const RunningScope scope = *running_scope(spec, parts[part::query].device());
  const Inputs x(parts, spec, scope.keys);
  if (sees_alike(scope, spec)) {
    const Tensor sums = at::matmul(x.key.transpose(-2, -1), x.value);
    return normalised({at::matmul(x.query, sums.unsqueeze(2)), x.shift.unsqueeze(2)}, spec);
  }
  const auto aligned = [&](const Tensor& y, double filling) {
    return aligned_with_queries(y, scope.last, spec.queries, filling);
  };
  Sums before;
  if (scope.last > 0) {
    const auto first = [&](const Tensor& y) { return y.narrow(2, 0, scope.last); };
    before = sums_of(first(x.key), first(x.value), first(x.shift));
  }
  return normalised(causal_sums(x.query, aligned(x.key, 0), aligned(x.value, 0),
                                aligned(x.shift, no_shift), before),
                    spec);
}

AttentionResult LinearState::step(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const Score& score) {
  if (!value.defined()) fail("[linear attention] value is undefined");
  const Lowered lowered =
      lower(query, key, value, {.score = score, .scope = causal(), .normaliser = "linear"},
            /*for_later_queries=*/true);
  const WithoutAutocast no_autocast;
  const auto& spec = lowered.spec;
  if (spec->queries != spec->keys || spec->queries == 0)
    fail(
        "[linear attention] a step has {} queries and {} keys; it must have one or more, the same "
        "number of both",
        spec->queries, spec->keys);
  const Inputs x(lowered.parts, *spec, {});
  const Sums before = {sums, shift};
  if (sums.defined()) {
    const std::vector<int64_t> wanted = {spec->batch, x.key.size(1), x.key.size(3),
                                         x.value.size(3)};
    if (sums.sizes() != at::IntArrayRef(wanted))
      fail(
          "[linear attention] the sums so far have shape [{}], the sums of this step [{}]; they "
          "must match",
          fmt::join(sums.sizes(), ", "), fmt::join(wanted, ", "));
  }
  const auto [context, lse] =
      normalised(causal_sums(x.query, x.key, x.value, x.shift, before), *spec);
  const Sums own = sums_of(x.key, x.value, x.shift);
  const Sums after = sums.defined() ? joined(before, own) : own;
  sums = after.sums;
  shift = after.shift;
  return {with_axes_of(context.to(spec->stored), query), with_axes_of(lse, query)};
}

}  // namespace attend
