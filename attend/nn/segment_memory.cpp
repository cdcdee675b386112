#include "attend/nn/segment_memory.h"

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// elu(x) + 1 without the rounding of the sum for small exponentials.
Tensor features(const Tensor& x) { return at::where(x > 0, x + 1, x.clamp_max(0).exp()); }

// Features may be too small for their type.
Tensor not_zero(const Tensor& sum) { return sum.clamp_min(1e-30); }

// Repeats x for the heads that share keys.
Tensor shared(const Tensor& x, int64_t heads) { return x.repeat_interleave(heads / x.size(1), 1); }

void add_segment(MemorySums& sums, const Tensor& key, const Tensor& value) {
  const Tensor mapped = features(key).transpose(2, 3);
  const Tensor values = at::matmul(mapped, value), total = mapped.sum(3, /*keepdim=*/true);
  sums = sums.values.defined() ? MemorySums{sums.values + values, sums.total + total}
                               : MemorySums{values, total};
}

Tensor read_memory(const MemorySums& sums, const Tensor& query) {
  const Tensor mapped = features(query);
  const int64_t heads = query.size(1);
  return at::matmul(mapped, shared(sums.values, heads)) /
         not_zero(at::matmul(mapped, shared(sums.total, heads)));
}

void check_segment(int64_t segment, int64_t heads) {
  if (segment < 1 || heads < 1)
    fail("[segment memory] got segments of {} keys and {} heads; both must be 1 or more", segment,
         heads);
}

}  // namespace

Tensor memory_contexts(int64_t segment, const SegmentHeads& heads, const AttentionSpec& spec,
                       const Tensor& gate, MemorySums& sums, const Pass& pass) {
  check_segment(segment, heads.query.size(1));
  const int64_t queries = heads.query.size(2);
  std::vector<Tensor> parts;
  int64_t begin = 0;  // first key of the segment
  for (int64_t first = 0; first < queries;) {
    const int64_t position = heads.offset + first;
    for (; begin + segment <= position; begin += segment)
      add_segment(sums, heads.plain_key.narrow(2, begin, segment),
                  heads.value.narrow(2, begin, segment));
    const int64_t count = std::min(queries - first, begin + segment - position);
    const int64_t keys = position + count - begin;
    AttentionSpec local = spec;
    local.scope = causal(position - begin);
    local.dropout.first_query += first;
    local.dropout.first_key += begin;
    Tensor part = (1 - gate) * pass.attention(heads.query.narrow(2, first, count),
                                              heads.key.narrow(2, begin, keys),
                                              heads.value.narrow(2, begin, keys), local)
                                   .context;
    if (sums.values.defined())
      part = part + gate * read_memory(sums, heads.plain_query.narrow(2, first, count));
    parts.push_back(part);
    first += count;
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 2);
}

Tensor memory_weights(int64_t segment, const SegmentHeads& heads, const AttentionSpec& spec,
                      const Tensor& gate) {
  check_segment(segment, heads.query.size(1));
  const auto numbers = heads.query.options().dtype(at::kLong).requires_grad(false);
  const Tensor key = at::arange(heads.key.size(2), numbers);
  const Tensor query = at::arange(heads.query.size(2), numbers).view({-1, 1}) + heads.offset;
  const Tensor begin = at::floor_divide(query, segment) * segment;
  AttentionSpec local = spec;
  local.scope = dense_mask((key >= begin).logical_and(key <= query));
  const Tensor lse = attention(heads.query, heads.key, heads.value, local).lse;
  const Tensor near = attention_weights(heads.query, heads.key, lse, local);
  const Tensor mapped = shared(features(heads.plain_key), heads.query.size(1)).transpose(2, 3);
  const Tensor products = at::matmul(features(heads.plain_query), mapped) * (key < begin);
  const Tensor far = products / not_zero(products.sum(3, /*keepdim=*/true));
  return (1 - gate) * near + gate * far;
}

SegmentMemory::SegmentMemory(int64_t segment, int64_t heads) : segment_(segment) {
  check_segment(segment, heads);
  beta_ = register_parameter("beta", torch::zeros({heads}));
}

Tensor SegmentMemory::attend(const SegmentHeads& heads, const AttentionSpec& spec, MemorySums& sums,
                             const Tensor& output, const Pass& pass) const {
  const Tensor gate = at::sigmoid(beta_).view({-1, 1, 1});
  if (pass.watch == nullptr || sums.values.defined())
    return memory_contexts(segment_, heads, spec, gate, sums, pass.unseen());
  AttentionSpec whole = spec;
  whole.scope = causal(heads.offset);
  return pass.apply_weights(memory_weights(segment_, heads, spec, gate), heads.value, whole,
                            output);
}

}  // namespace attend
