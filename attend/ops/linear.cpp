#include <ATen/OpMathType.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "attend/base/error.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/linear_state.h"
#include "attend/ops/lower-inl.h"
#include "attend/ops/normalisers-inl.h"
#include "attend/ops/scope_checks-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Products of a chunk with itself cost chunk (A + Dv) a query, those with the sums before it
// 2 A Dv: about the same at depths of 64 to 128.
constexpr int64_t longest_chunk = 128;

// A scope that running sums can follow: query i sees the keys j <= i + last that are in `keys`.
struct RunningScope {
  int64_t last;
  Tensor keys;  // bool [B or 1, 1, Tk or 1, 1]; undefined: all
};

// What holds of a key whatever the query and the head.
bool is_of_keys(const DenseMask& condition) {
  const Tensor& mask = condition.mask;
  return (mask.dim() < 2 || mask.size(-2) == 1) && (mask.dim() < 3 || mask.size(-3) == 1);
}
bool is_of_keys(const KeyLengths&) { return true; }
bool is_of_keys(const Prefix&) { return true; }
template <class T>
bool is_of_keys(const T&) {
  return false;
}

// The last key that query 0 sees, where the window has no beginning and no gaps.
std::optional<int64_t> last_of(const Window& window, int64_t queries) {
  const int64_t offset = std::clamp(window.offset, -farthest_offset, farthest_offset);
  if (window.offsets.defined() || window.dilation != 1 || window.left < queries - 1 + offset)
    return std::nullopt;
  return offset + std::min(window.right, unbounded);
}

Tensor mask_of(const Clause& of_keys, const LoweredSpec& spec, const at::Device& device) {
  Tensor mask = scope_mask(Scope{{of_keys}}, spec.batch, spec.heads, 1, spec.keys, device);
  while (mask.dim() < 4) mask = mask.unsqueeze(0);
  return mask.transpose(-2, -1);
}

std::optional<RunningScope> running_scope(const LoweredSpec& spec, const at::Device& device) {
  RunningScope scope{spec.keys, {}};
  if (spec.scope.any_of.empty()) return scope;
  if (spec.scope.any_of.size() > 1) return std::nullopt;
  Clause of_keys;
  of_keys.reserve(spec.scope.any_of[0].size());
  for (const Condition& condition : spec.scope.any_of[0]) {
    if (const auto* window = std::get_if<Window>(&condition)) {
      const auto last = last_of(*window, spec.queries);
      if (!last) return std::nullopt;
      scope.last = std::min(scope.last, *last);
    } else if (std::visit([](const auto& one) { return is_of_keys(one); }, condition)) {
      of_keys.push_back(condition);
    } else {
      return std::nullopt;
    }
  }
  if (!of_keys.empty()) scope.keys = mask_of(of_keys, spec, device);
  return scope;
}

// Sums of values and, in the last column, of weights.
Tensor with_ones(const Tensor& value) {
  auto shape = value.sizes().vec();
  shape.back() = 1;
  return at::cat({value, at::ones(shape, value.options())}, -1);
}

Tensor sums_of(const Tensor& key, const Tensor& value) {
  return at::matmul(key.transpose(-2, -1), value);
}

// [B, Hkv, T, n] as [B, Hkv, 1, chunks, chunk, n], with zeros at the end; the same behind a fifth
// axis, of the queries of one group.
Tensor in_chunks(const Tensor& x, int64_t chunk) {
  const int64_t length = x.size(-2), chunks = (length + chunk - 1) / chunk;
  const Tensor whole =
      length % chunk == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, chunks * chunk - length});
  auto shape = x.sizes().vec();
  shape.back() = chunk;
  shape.end()[-2] = chunks;
  shape.push_back(x.size(-1));
  return whole.reshape(shape);
}

// sum_{j <= i} (q_i . k_j) v_j and what the queries find in the sums `before`: queries
// [B, Hkv, G, T, A], keys [B, Hkv, T, A], values [B, Hkv, T, E] -> [B, Hkv, G, T, E]. Each chunk
// meets itself and the sums of those before it.
Tensor causal_sums(const Tensor& query, const Tensor& key, const Tensor& value,
                   const Tensor& before) {
  const int64_t length = query.size(3);
  const int64_t chunk = std::min(length, longest_chunk);
  const Tensor q = in_chunks(query, chunk);
  const Tensor k = in_chunks(key, chunk).unsqueeze(2), v = in_chunks(value, chunk).unsqueeze(2);
  Tensor sums = at::matmul(at::matmul(q, k.transpose(-2, -1)).tril(), v);
  const int64_t chunks = q.size(3);
  if (chunks > 1 || before.defined()) {
    // One pass, without subtracting what would cancel.
    const Tensor own = sums_of(k.narrow(3, 0, chunks - 1), v.narrow(3, 0, chunks - 1));
    const Tensor first =
        before.defined() ? before.unsqueeze(2).unsqueeze(3) : at::zeros_like(own.narrow(3, 0, 1));
    sums = sums + at::matmul(q, at::cat({first, own}, 3).cumsum(3));
  }
  return sums.flatten(3, 4).narrow(3, 0, length);
}

// Keys or values moved so that query i sees those at 0 ... i, with zeros where there is none. Those
// that every query sees, more than that, are left out.
Tensor beside_queries(const Tensor& x, int64_t last, int64_t queries) {
  const int64_t first = std::max<int64_t>(0, last), front = std::clamp<int64_t>(-last, 0, queries);
  const int64_t count = std::clamp<int64_t>(x.size(2) - first, 0, queries - front);
  return at::constant_pad_nd(x.narrow(2, first, count), {0, 0, front, queries - front - count});
}

// Each query head beside the head of the keys that it reads.
Tensor grouped(const Tensor& query, int64_t key_heads) {
  return query.unflatten(1, {key_heads, query.size(1) / key_heads});
}

AttentionResult normalised(const Tensor& grouped_sums, const LoweredSpec& spec) {
  const Tensor sums = grouped_sums.flatten(1, 2);
  const int64_t depth = sums.size(-1) - 1;
  const Tensor normaliser = sums.narrow(-1, depth, 1), none_left = normaliser == 0;
  const Tensor divisor = normaliser.masked_fill(none_left, 1.0);
  const Tensor lse = divisor.log().masked_fill(none_left, minus_infinity).squeeze(-1);
  const Tensor divided_by = log_divisor(spec);
  return {sums.narrow(-1, 0, depth) / divisor, divided_by.defined() ? lse + divided_by : lse};
}

// Mapped, in the dtype of the arithmetic; keys out of scope are 0, values have a column of ones.
struct Inputs {
  Tensor query, key, value;

  Inputs(const Parts& parts, const LoweredSpec& spec, const Tensor& keys_in_scope) {
    const at::ScalarType precision = at::toOpMathType(parts[part::query].scalar_type());
    key = parts[part::key].to(precision);
    if (keys_in_scope.defined()) key = key.masked_fill(keys_in_scope.logical_not(), 0.0);
    query = grouped(parts[part::query].to(precision), key.size(1));
    if (spec.scale != 1) query = query * spec.scale;
    value = with_ones(parts[part::value].to(precision));
  }
};

// The largest number, without a gradient, over an axis or two; 0 where there is none.
Tensor largest(const Tensor& x, at::IntArrayRef axes) {
  for (const int64_t axis : axes) {
    if (x.size(axis) > 0) continue;
    auto shape = x.sizes().vec();
    for (const int64_t lowered : axes) shape.end()[lowered] = 1;
    return at::zeros(shape, x.options());
  }
  const Tensor found = x.amax(axes, /*keepdim=*/true);
  return found.masked_fill(found == minus_infinity, 0.0);
}

}  // namespace

Tensor log_divisor(const LoweredSpec& spec) {
  if (!spec.query_shift.defined()) return {};
  const Tensor& of_keys = spec.key_shift;
  return spec.query_shift.squeeze(-1) +
         of_keys.repeat_interleave(spec.heads / of_keys.size(1), 1).squeeze(-1);
}

void take_features(Parts& parts, LoweredSpec& spec) {
  if (spec.score->features != Features::logarithms) return;
  Tensor &query = parts[part::query], &key = parts[part::key];
  // A constant of the row cancels only where nothing comes between the scores and their sum.
  if (spec.normaliser->running_sums && spec.soft_cap == 0) {
    Tensor seen = key.detach(), unseen;
    const auto scope = running_scope(spec, key.device());
    if (scope && scope->keys.defined()) unseen = scope->keys.logical_not();
    if (unseen.defined()) seen = seen.masked_fill(unseen, minus_infinity);
    spec.query_shift = largest(query.detach(), {-1});
    spec.key_shift = largest(seen, {-2, -1});
    query = query - spec.query_shift;
    key = key - spec.key_shift;
    // They may be above 0, and their exp must not become infinity. The largest of the others is 0,
    // where a clamp has another derivative in LibTorch 2.15 than in 1.13.
    if (unseen.defined()) key = key.masked_fill(unseen, 0.0);
  }
  query = query.exp();
  key = key.exp();
}

std::string why_not_running_sums(const LoweredSpec& spec) {
  if (spec.soft_cap > 0) return "running sums hold no single score, which soft_cap changes";
  if (spec.dropout.probability > 0) return "running sums hold no single weight to drop";
  if (!running_scope(spec, at::kCPU))
    return "running sums follow the scopes all and causal, with key lengths, a prefix or a mask of "
           "keys; this scope is another";
  return {};
}

AttentionResult linear_attention(const Parts& parts, const LoweredSpec& spec) {
  const RunningScope scope = *running_scope(spec, parts[part::query].device());
  const Inputs x(parts, spec, scope.keys);
  if (scope.last >= spec.keys - 1 || spec.queries == 0)
    return normalised(at::matmul(x.query, sums_of(x.key, x.value).unsqueeze(2)), spec);
  const auto beside = [&](const Tensor& y) { return beside_queries(y, scope.last, spec.queries); };
  Tensor before;
  if (scope.last > 0)
    before = sums_of(x.key.narrow(2, 0, scope.last), x.value.narrow(2, 0, scope.last));
  return normalised(causal_sums(x.query, beside(x.key), beside(x.value), before), spec);
}

AttentionResult LinearState::step(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const Score& score) {
  if (!value.defined()) fail("[linear attention] value is undefined");
  Lowered lowered =
      lower(query, key, value, {.score = score, .scope = causal(), .normaliser = "linear"});
  const WithoutAutocast no_autocast;
  const Parts& parts = lowered.parts;
  const auto& spec = lowered.spec;
  if (spec->queries != spec->keys || spec->queries == 0)
    fail(
        "[linear attention] a step has {} queries and {} keys; it must have one or more, as many "
        "of both",
        spec->queries, spec->keys);
  Inputs x(parts, *spec, {});
  Tensor before = sums;
  if (before.defined()) {
    const std::vector<int64_t> wanted = {spec->batch, x.key.size(1), x.key.size(3),
                                         x.value.size(3)};
    if (before.sizes() != at::IntArrayRef(wanted))
      fail(
          "[linear attention] the sums so far have shape [{}], those of this step [{}]; they must "
          "match",
          fmt::join(before.sizes(), ", "), fmt::join(wanted, ", "));
    if (shift.defined() && spec->key_shift.defined()) {
      const Tensor larger = at::maximum(shift, spec->key_shift);
      before = before * (shift - larger).exp();
      x.key = x.key * (spec->key_shift - larger).exp();
      spec->key_shift = larger;
    }
  }
  const Tensor own = sums_of(x.key, x.value);
  sums = before.defined() ? before + own : own;
  shift = spec->key_shift;
  const auto [context, lse] = normalised(causal_sums(x.query, x.key, x.value, before), *spec);
  return {with_axes_of(context.to(spec->stored), query), with_axes_of(lse, query)};
}

}  // namespace attend
