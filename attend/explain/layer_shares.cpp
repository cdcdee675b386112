// Composition of each layer's vectors, followed down to the source.
#include <algorithm>

#include "attend/explain/attention_methods-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t numbers_at_once = int64_t{1} << 22;

// Contributions of the keys [rows, keys] and of the residual input [rows] to a block's output.
struct Contributions {
  Tensor keys, rows;
};

// Contributions to `count` rows of a block around the attention.
Contributions contributions_of(const TracedBlock& block, const Tensor& weights,
                               const ValueParts& values, int64_t first, int64_t count) {
  const auto rows_of = [&](const Tensor& x) { return x[0].narrow(0, first, count); };
  Tensor parts = values.rows(weights.narrow(1, first, count), first);
  Tensor kept = rows_of(block.input).unsqueeze(1);
  // In self-attention, the residual input counts as a contribution of the same vector's key.
  if (!block.site.reads_source) {
    parts.narrow(1, first, count).diagonal(0, 0, 1).add_(rows_of(block.input).t());
    kept = at::zeros_like(kept);
  }
  const Tensor made = rows_of(block.output).unsqueeze(1);
  // Ferrando et al. 2022, eq. 7: how much nearer to the whole a part is than zero.
  const auto amounts = [&](const Tensor& vectors) {
    const Tensor part = block.scale.defined()
                            ? (block.centred ? vectors - vectors.mean(-1, true) : vectors) *
                                  rows_of(block.scale).unsqueeze(1)
                            : vectors;
    return (made.abs().sum(-1) - (made - part).abs().sum(-1)).relu();
  };
  return {amounts(parts), amounts(kept).squeeze(1)};
}

LayerShares block_shares(const TracedAttention& attention, const TracedBlock& given) {
  TracedBlock block = given;
  const auto type = given.output.scalar_type();
  for (Tensor* each : {&block.input, &block.output, &block.scale})
    if (each->defined()) *each = each->to(at::kCPU);
  const Tensor weights = traced_weights(attention).detach().to(at::kCPU, type);
  const ValueParts values(attention, {}, type);
  const int64_t rows = weights.size(1);
  const int64_t at_once = std::max<int64_t>(1, numbers_at_once / (values.keys() * values.depth()));
  std::vector<Tensor> keys, kept;
  for (int64_t first = 0; first < rows; first += at_once) {
    const Contributions some =
        contributions_of(block, weights, values, first, std::min(at_once, rows - first));
    keys.push_back(some.keys);
    kept.push_back(some.rows);
  }
  const Tensor amounts = float64_on_cpu(at::cat(keys));
  if (!block.site.reads_source) return shares_of(block.site.part, amounts, {});
  return shares_of(block.site.part, float64_on_cpu(at::cat(kept)).diag(), amounts);
}

}  // namespace

LayerShares shares_of(NetworkPart part, const Tensor& own, const Tensor& source) {
  Tensor sums = own.sum(1, true);
  if (source.defined()) sums = sums + source.sum(1, true);
  const Tensor whole = at::where(sums > 0, sums, at::ones_like(sums));
  const Tensor own_only = at::eye(own.size(0), own.options()) * (sums <= 0);
  return {part, own / whole + own_only, source.defined() ? source / whole : Tensor()};
}

Tensor follow_shares(const Subject& subject, const NetworkTrace& trace,
                     const std::vector<LayerShares>& layers) {
  Tensor encoder, decoder;
  for (const LayerShares& layer : layers) {
    if (layer.part != NetworkPart::decoder) {
      encoder = encoder.defined() ? layer.own.matmul(encoder) : layer.own;
      continue;
    }
    if (decoder.defined()) decoder = layer.own.matmul(decoder);
    if (!layer.source.defined()) continue;
    const Tensor read = encoder.defined() ? layer.source.matmul(encoder) : layer.source;
    decoder = decoder.defined() ? decoder + read : read;
  }
  if (decoder.defined()) return decoder;
  const TracedAttention& last = *answer_attention(trace, {});
  const Tensor map = reads_for_answer(last)
                         ? float64_on_cpu(traced_weights(last)).mean(0).matmul(encoder)
                         : read_by_answer(subject, last, encoder);
  return source_columns(subject, last, map);
}

std::string no_blocks_reason(const NetworkTrace& trace) {
  size_t reported = 0;
  for (const TracedAttention& one : trace.attentions) {
    if (one.site.layer == 0) continue;
    if (reported == trace.blocks.size() || !(trace.blocks[reported].site == one.site))
      return "models of this type do not report the vectors of their layers; take rollout";
    ++reported;
  }
  return {};
}

// ALTI (Ferrando et al. 2022); ALTI+ (Ferrando et al. 2022b) for a decoder.
Tensor layer_contributions(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  std::vector<LayerShares> layers;
  for (const TracedAttention& one : trace.attentions)
    if (one.site.layer > 0) layers.push_back(block_shares(one, trace.blocks[layers.size()]));
  return follow_shares(subject, trace, layers);
}

}  // namespace attend
