#include <algorithm>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"

namespace attend {
namespace {

using at::Tensor;

bool is_pooling(const Site& site) { return site.part == NetworkPart::pooling; }

bool is_decoder(const Site& site) { return site.part == NetworkPart::decoder; }

// Adds up head by head: all heads of a node with thousands of neighbours take gigabytes.
Tensor mean_of_heads(const TracedAttention& attention) {
  Tensor sum;
  for (int64_t head = 0; head < attention.heads(); ++head) {
    const Tensor own = float64_on_cpu(traced_weights(attention, {head}))[0];
    sum = sum.defined() ? sum.add_(own) : own.clone();
  }
  return sum.div_(attention.heads());
}

// Maps [heads, Dv, depth] from each head's context to the layer's output.
Tensor output_maps(const TracedAttention& attention) {
  std::vector<Tensor> parts;
  for (const AttentionCall& call : attention.calls) {
    const Tensor map = float64_on_cpu(call.output);
    parts.push_back(map.view({map.size(0), call.query.size(1), -1}).permute({1, 2, 0}));
  }
  return at::cat(parts);
}

// Factors [heads, rows, Dv] of the contexts; undefined: none.
Tensor context_factors(const TracedAttention& attention) {
  if (std::none_of(attention.calls.begin(), attention.calls.end(),
                   [](const AttentionCall& call) { return call.factors.defined(); }))
    return {};
  std::vector<Tensor> parts;
  for (const AttentionCall& call : attention.calls)
    parts.push_back(
        call.factors.defined()
            ? float64_on_cpu(call.factors)[0].unflatten(1, {call.heads(), -1}).transpose(0, 1)
            : at::ones({call.heads(), call.query.size(-2), call.value.size(-1)}, at::kDouble));
  return at::cat(parts);
}

Tensor with_residual(const Subject& subject, const Tensor& map) {
  return layers_add(subject) ? 0.5 * (map + at::eye(map.size(0), map.options())) : map;
}

// Each row becomes the next one; the last stays.
Tensor next_rows(const Tensor& map) { return at::cat({map.slice(0, 1), map.slice(0, -1)}); }

// followed() for a single stack, from the answer down, since the answer reads few rows.
Tensor followed_down(const Subject& subject, const NetworkTrace& trace,
                     Tensor (*map_of)(const TracedAttention& attention)) {
  const TracedAttention& last = *answer_attention(trace, {});
  const TopVectors top = subject.network().top_vectors_of(subject.batch);
  Tensor rows = is_pooling(last.site) ? map_of(last) : float64_on_cpu(top.shares);
  for (auto one = trace.attentions.rbegin(); one != trace.attentions.rend(); ++one) {
    if (is_pooling(one->site) || is_decoder(one->site)) continue;
    const Tensor below = rows.matmul(map_of(*one));
    rows = top.layers_add ? 0.5 * (below + rows) : below;
  }
  return source_columns(subject, last, rows);
}

// The maps [rows, columns] of all layers, multiplied from the source to the answer. A layer's input
// has half of the weight if the layer adds to it.
Tensor followed(const Subject& subject, const NetworkTrace& trace,
                Tensor (*map_of)(const TracedAttention& attention)) {
  if (std::none_of(trace.attentions.begin(), trace.attentions.end(),
                   [](const TracedAttention& one) { return one.site.reads_source; }))
    return followed_down(subject, trace, map_of);
  Tensor encoder, decoder;
  const auto seen = [&](const Tensor& map) {
    return encoder.defined() ? map.matmul(encoder) : map;
  };
  for (const TracedAttention& one : trace.attentions) {
    if (one.site.reads_source) {
      const Tensor read = seen(map_of(one));
      // A recurrent decoder does not add to its input.
      decoder = one.site.layer == 0 ? read
                : decoder.defined() ? 0.5 * (decoder + read)
                                    : 0.5 * read;
    } else if (is_decoder(one.site)) {
      if (decoder.defined() && one.site.layer > 0)
        decoder = with_residual(subject, map_of(one)).matmul(decoder);
    } else {
      encoder = seen(with_residual(subject, map_of(one)));
    }
  }
  return decoder;
}

}  // namespace

Tensor float64_on_cpu(const Tensor& x) { return x.detach().to(at::kCPU, at::kDouble).contiguous(); }

bool reads_for_answer(const TracedAttention& one) {
  return one.site.reads_source || is_pooling(one.site);
}

const TracedAttention* answer_attention(const NetworkTrace& trace, const MethodChoice& choice) {
  bool has_answer_map = false;
  for (const TracedAttention& one : trace.attentions)
    has_answer_map = has_answer_map || reads_for_answer(one);
  const TracedAttention* found = nullptr;
  int64_t layers = 0;
  for (const TracedAttention& one : trace.attentions) {
    if (has_answer_map ? !reads_for_answer(one) : is_decoder(one.site)) continue;
    ++layers;
    if (!choice.layer || *choice.layer == layers) found = &one;
  }
  if (choice.layer && (*choice.layer < 1 || *choice.layer > layers) && layers > 0)
    fail("layer {} is asked for; the answer is read off {} {}", *choice.layer, layers,
         layers == 1 ? "layer" : "layers");
  return found;
}

std::vector<int64_t> chosen_heads(const TracedAttention& attention, const MethodChoice& choice) {
  if (!choice.head) return {};
  if (*choice.head < 1 || *choice.head > attention.heads())
    fail("head {} is asked for; {} has {}", *choice.head, attention.name(), attention.heads());
  return {*choice.head - 1};
}

Tensor read_by_answer(const Subject& subject, const TracedAttention& attention, const Tensor& map) {
  if (reads_for_answer(attention)) return map;
  const Tensor shares = subject.network().top_vectors_of(subject.batch).shares;
  return at::matmul(shares.to(map.options()), map);
}

Tensor source_columns(const Subject& subject, const TracedAttention& attention, const Tensor& map) {
  const int64_t before = reads_for_answer(attention)
                             ? 0
                             : subject.network().top_vectors_of(subject.batch).before_source;
  return map.slice(-1, before, before + subject.source_length());
}

Tensor raw_weights(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const TracedAttention& attention = *answer_attention(trace, choice);
  const Tensor weights = float64_on_cpu(traced_weights(attention, chosen_heads(attention, choice)));
  return source_columns(subject, attention, read_by_answer(subject, attention, weights.mean(0)));
}

Tensor head_values(const TracedAttention& attention) {
  std::vector<Tensor> parts;
  for (const AttentionCall& call : attention.calls) {
    Tensor value = float64_on_cpu(call.value).squeeze(0);
    if (value.dim() == 2) value = value.unsqueeze(0);
    parts.push_back(value.repeat_interleave(call.heads() / value.size(0), 0));
    if (attention.in_steps()) break;  // each step reads the same values
  }
  return at::cat(parts);
}

ValueParts::ValueParts(const TracedAttention& attention, const std::vector<int64_t>& heads,
                       at::ScalarType type) {
  const auto chosen = [&](const Tensor& x) {
    return (heads.empty() ? x : x.narrow(0, heads[0], 1)).to(type);
  };
  values_ = head_values(attention);
  if (!attention.calls[0].output.defined()) {
    values_ = chosen(values_);
    return;
  }
  const Tensor factors = context_factors(attention), maps = output_maps(attention);
  if (factors.defined()) {
    maps_ = chosen(maps);
    factors_ = chosen(factors);
  } else {
    values_ = at::bmm(values_, maps);
  }
  values_ = chosen(values_);
}

Tensor ValueParts::rows(const Tensor& weights, int64_t first) const {
  if (!has_factors()) return at::einsum("hts,hsd->tsd", {weights, values_});
  std::vector<Tensor> parts;
  for (int64_t t = 0; t < weights.size(1); ++t) {
    const Tensor maps = factors_.select(1, first + t).unsqueeze(2) * maps_;
    const Tensor mapped = at::bmm(values_, maps);
    parts.push_back(at::einsum("hs,hsd->sd", {weights.select(1, t), mapped}));
  }
  return at::stack(parts);
}

// Kobayashi et al. 2020, eq. 4: || sum_h a_tj^h v_j^h W_O^h ||.
Tensor value_norms(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const TracedAttention& attention = *answer_attention(trace, choice);
  const std::vector<int64_t> heads = chosen_heads(attention, choice);
  const Tensor given = float64_on_cpu(traced_weights(attention, heads));
  const ValueParts parts(attention, heads, at::kDouble);
  std::vector<Tensor> rows;
  if (parts.has_factors() && !reads_for_answer(attention)) {
    // Rows have their own maps, so that only their parts can be added up.
    const Tensor shares = float64_on_cpu(subject.network().top_vectors_of(subject.batch).shares);
    for (const Tensor& row : shares.unbind()) {
      Tensor sum = at::zeros({parts.keys(), parts.depth()}, given.options());
      for (const Tensor& t : row.nonzero().unbind())
        sum += row[t.item<int64_t>()] *
               parts.rows(given.narrow(1, t.item<int64_t>(), 1), t.item<int64_t>())[0];
      rows.push_back(sum.norm(2, 1).unsqueeze(0));
    }
    return source_columns(subject, attention, at::cat(rows));
  }
  const Tensor weights = read_by_answer(subject, attention, given);
  for (int64_t t = 0; t < weights.size(1); ++t)  // all of [T, keys, depth] may be large
    rows.push_back(parts.rows(weights.narrow(1, t, 1), t).norm(2, 2));
  return source_columns(subject, attention, at::cat(rows));
}

// Keys that any head may attend to.
Tensor answer_scope(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const TracedAttention& attention = *answer_attention(trace, choice);
  Tensor scope = float64_on_cpu(traced_scope(attention));
  if (const auto heads = chosen_heads(attention, choice); !heads.empty())
    scope = scope.narrow(0, heads[0], 1);
  return source_columns(subject, attention, read_by_answer(subject, attention, scope.mean(0))) > 0;
}

// Chen et al. 2020: the alignment of a token is the attention of the decoder's next step, which has
// read the token.
Tensor shifted_alignment(const Subject& subject, const NetworkTrace& trace,
                         const MethodChoice& choice) {
  return next_rows(raw_weights(subject, trace, choice));
}

Tensor shifted_scope(const Subject& subject, const NetworkTrace& trace,
                     const MethodChoice& choice) {
  return next_rows(answer_scope(subject, trace, choice));
}

bool layers_add(const Subject& subject) {
  return subject.network().top_vectors_of(subject.batch).layers_add;
}

Tensor layer_map(const Subject& subject, const TracedAttention& attention) {
  return with_residual(subject, mean_of_heads(attention));
}

// Abnar & Zuidema 2020, eq. 1, followed from the source to the answer.
Tensor roll_out(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  return followed(subject, trace, mean_of_heads);
}

Tensor layers_scope(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  return followed(subject, trace, [](const TracedAttention& attention) {
           return float64_on_cpu(traced_scope(attention)).mean(0);
         }) > 0;
}

}  // namespace attend
