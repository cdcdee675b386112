#include "attend/mechanisms/memory_addressing.h"

#include <vector>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

void expect_shape(const Tensor& x, at::IntArrayRef shape, const char* name) {
  if (!x.defined() || x.sizes() != shape)
    fail("[memory addressing] {} has shape {}; it must have [{}]", name, shape_of(x),
         fmt::join(shape, ", "));
}

void expect_axes(const Tensor& x, int64_t axes, const char* name) {
  if (!x.defined() || x.dim() != axes)
    fail("[memory addressing] {} has shape {}; it must have {} axes", name, shape_of(x), axes);
}

// Reshapes [B, R] to broadcast with weights [B, R, N].
Tensor per_row(const Tensor& gates, const Tensor& weights, const char* name) {
  expect_shape(gates, weights.sizes().slice(0, 2), name);
  return gates.unsqueeze(-1);
}

// One of several heads, to broadcast over every row, [B, N, 1], or every column, [B, 1, W].
Tensor over_rows(const Tensor& weights, int64_t head) {
  return weights.select(1, head).unsqueeze(2);
}
Tensor over_columns(const Tensor& vectors, int64_t head) {
  return vectors.select(1, head).unsqueeze(1);
}

}  // namespace

Tensor address_by_content(const Tensor& memory, const Tensor& keys, const Tensor& strengths) {
  expect_axes(memory, 3, "memory");
  expect_axes(keys, 3, "keys");
  expect_shape(keys, {memory.size(0), keys.size(1), memory.size(2)}, "keys");
  const Score cosine("cosine");
  // The parameter beta is one number per head; strengths also differ per batch entry.
  const Tensor query = cosine.map_query(keys) * per_row(strengths, keys, "strengths");
  return attention_scores(query, cosine.map_key(memory), {.score = cosine.mapped()}).softmax(-1);
}

Tensor interpolate_weights(const Tensor& content, const Tensor& previous, const Tensor& gates) {
  expect_axes(content, 3, "content");
  expect_shape(previous, content.sizes(), "previous");
  return at::lerp(previous, content, per_row(gates, content, "gates"));
}

Tensor shift_weights(const Tensor& weights, const Tensor& shifts) {
  expect_axes(weights, 3, "weights");
  expect_axes(shifts, 3, "shifts");
  const int64_t count = shifts.size(2);
  expect_shape(shifts, {weights.size(0), weights.size(1), count}, "shifts");
  if (count % 2 == 0 || count > weights.size(2))
    fail("[memory addressing] {} shifts over {} rows; their number must be odd and at most that",
         count, weights.size(2));
  Tensor shifted;
  for (int64_t s = 0; s < count; ++s) {
    const int64_t distance = s - count / 2;
    const Tensor moved = distance == 0 ? weights : weights.roll(distance, -1);
    const Tensor part = moved * shifts.narrow(2, s, 1);
    shifted = shifted.defined() ? shifted + part : part;
  }
  return shifted;
}

Tensor sharpen_weights(const Tensor& weights, const Tensor& sharpness) {
  expect_axes(weights, 3, "weights");
  // The ratio is invariant to a common factor. Scaling the largest weight to 1 prevents underflow
  // of all powers.
  const Tensor scaled = weights / weights.detach().amax(-1, true);
  const Tensor powers = scaled.pow(per_row(sharpness, weights, "sharpness"));
  return powers / powers.sum(-1, true);
}

Tensor read_rows(const Tensor& memory, const Tensor& weights) {
  expect_axes(memory, 3, "memory");
  expect_axes(weights, 3, "weights");
  expect_shape(weights, {memory.size(0), weights.size(1), memory.size(1)}, "weights");
  return at::bmm(weights, memory);
}

Tensor erase_and_add(const Tensor& memory, const Tensor& weights, const Tensor& erase,
                     const Tensor& add) {
  expect_axes(memory, 3, "memory");
  expect_axes(weights, 3, "weights");
  const int64_t heads = weights.size(1);
  expect_shape(weights, {memory.size(0), heads, memory.size(1)}, "weights");
  for (const auto& [vectors, name] : {std::pair(&erase, "erase"), std::pair(&add, "add")})
    expect_shape(*vectors, {memory.size(0), heads, memory.size(2)}, name);
  Tensor kept = memory;
  for (int64_t r = 0; r < heads; ++r)
    kept = kept - kept * over_rows(weights, r) * over_columns(erase, r);
  return at::baddbmm(kept, weights.transpose(1, 2), add);
}

Tensor retention(const Tensor& free_gates, const Tensor& read_weights) {
  expect_axes(read_weights, 3, "read weights");
  return (1 - per_row(free_gates, read_weights, "free gates") * read_weights).prod(1);
}

Tensor next_usage(const Tensor& usage, const Tensor& write_weights, const Tensor& retained) {
  expect_axes(usage, 2, "usage");
  expect_shape(write_weights, usage.sizes(), "write weights");
  expect_shape(retained, usage.sizes(), "retention");
  return (usage + write_weights - usage * write_weights) * retained;
}

Tensor allocation(const Tensor& usage) {
  expect_axes(usage, 2, "usage");
  const Tensor order = std::get<1>(usage.detach().sort(/*stable=*/true, -1, /*descending=*/false));
  const Tensor sorted = usage.gather(-1, order);
  const Tensor ones = at::ones({usage.size(0), 1}, usage.options());
  const Tensor before = at::cat({ones, sorted}, -1).cumprod(-1).narrow(-1, 0, usage.size(1));
  return at::zeros_like(usage).scatter(-1, order, (1 - sorted) * before);
}

Tensor allocate_or_match(const Tensor& allocation, const Tensor& content,
                         const Tensor& allocation_gate, const Tensor& write_gate) {
  expect_axes(allocation, 2, "allocation");
  expect_shape(content, allocation.sizes(), "content");
  expect_shape(allocation_gate, {allocation.size(0)}, "allocation gate");
  expect_shape(write_gate, {allocation.size(0)}, "write gate");
  return write_gate.unsqueeze(-1) * at::lerp(content, allocation, allocation_gate.unsqueeze(-1));
}

TemporalLinks no_links(int64_t batch, int64_t rows, const at::TensorOptions& options) {
  return {at::zeros({batch, rows, rows}, options), at::zeros({batch, rows}, options)};
}

TemporalLinks after_writing(const TemporalLinks& before, const Tensor& write_weights) {
  expect_axes(before.links, 3, "links");
  const Tensor& w = write_weights;
  expect_shape(w, {before.links.size(0), before.links.size(1)}, "write weights");
  expect_shape(before.links, {w.size(0), w.size(1), w.size(1)}, "links");
  expect_shape(before.precedence, w.sizes(), "precedence");
  const Tensor column = w.unsqueeze(2), row = w.unsqueeze(1);
  const Tensor links = (1 - column - row) * before.links + column * before.precedence.unsqueeze(1);
  const Tensor diagonal = at::eye(w.size(1), w.options().dtype(at::kBool));
  return {links.masked_fill(diagonal, 0.0), (1 - w.sum(-1, true)) * before.precedence + w};
}

Followed follow_links(const TemporalLinks& links, const Tensor& read_weights) {
  expect_axes(links.links, 3, "links");
  expect_axes(read_weights, 3, "read weights");
  expect_shape(read_weights, {links.links.size(0), read_weights.size(1), links.links.size(1)},
               "read weights");
  // (L w)_i = sum_j L_ij w_j for each head.
  return {at::bmm(read_weights, links.links.transpose(1, 2)), at::bmm(read_weights, links.links)};
}

Tensor mix_read_modes(const Followed& followed, const Tensor& content, const Tensor& modes) {
  expect_axes(content, 3, "content");
  expect_shape(followed.forward, content.sizes(), "forward weights");
  expect_shape(followed.backward, content.sizes(), "backward weights");
  expect_shape(modes, {content.size(0), content.size(1), 3}, "modes");
  return modes.narrow(2, 0, 1) * followed.backward + modes.narrow(2, 1, 1) * content +
         modes.narrow(2, 2, 1) * followed.forward;
}

}  // namespace attend
