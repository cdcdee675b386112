#include "attend/explain/score_parts.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/knock_out.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/residual_parts-inl.h"

namespace attend {
namespace {

using at::Tensor;

// A call of attention, and a head of it.
struct CallHead {
  const AttentionCall& call;
  int64_t head;
};

CallHead call_of(const TracedAttention& attention, int64_t head) {
  for (const AttentionCall& call : attention.calls) {
    if (head < call.heads()) return {call, head};
    head -= call.heads();
  }
  fail("view scores: {} has no such head", attention.name());
}

// Whether the queries are weights, from weights_call().
bool holds_weights(const AttentionCall& call) {
  const int64_t keys = call.key.size(-2);
  return call.spec.normaliser.row().kernel == kernels::Normaliser::none &&
         call.key.size(-1) == keys &&
         (call.key == at::eye(keys, call.key.options())).all().item<bool>();
}

// Error unless the score is a product of query and key, with a constant factor and plus a bias.
void check_product(const AttentionCall& call) {
  const AttentionSpec& spec = call.spec;
  const ScoreRow& row = spec.score.row();
  if (holds_weights(call))
    fail(
        "view scores: the weights of this head combine several scores, as in multi-token, sparse "
        "or differential attention");
  if (!row.compares_vectors() || spec.normaliser.row().running_sums)
    fail("view scores: the score of this head is {}, which is not a product of query and key",
         row.formula);
  if (spec.soft_cap > 0)
    fail("view scores: the scores of this head are capped at {}, so they are not sums",
         spec.soft_cap);
}

// The only edge of that name.
AttentionHead edge_of(const std::string& name, const NetworkTrace& trace) {
  if (name.empty())
    fail(
        "view scores: shows one score of a head; name its query and key with at, as in "
        "encoder.1.head.1.query.2.key.1");
  const std::vector<AttentionHead> found = named_heads({name}, heads_of(trace), "at");
  const auto is_one = [](const std::optional<NumberRange>& range) {
    return range && range->first == range->last;
  };
  const AttentionHead& edge = found[0];
  if (found.size() != 1 || !is_one(edge.queries) || !is_one(edge.keys))
    fail("at {}: names several scores; name one, as in {}.head.{}.query.2.key.1", in_quotes(name),
         attention_key(edge.site), edge.head + 1);
  if (!is_self_attention(edge.site))
    fail("at {}: {} reads another sequence; name a head of self-attention", in_quotes(name),
         attention_key(edge.site));
  return edge;
}

const TracedAttention& attention_at(const NetworkTrace& trace, const Site& site) {
  return *std::find_if(trace.attentions.begin(), trace.attentions.end(),
                       [&](const TracedAttention& one) { return one.site == site; });
}

// The product of query and key.
double product_of(const AttentionCall& call, int64_t head, const HeadPlace& place) {
  const Tensor queries = with_heads(call.query)[0], keys = with_heads(call.key)[0];
  return float64_on_cpu(queries[head][place.query])
      .dot(float64_on_cpu(keys[head * keys.size(0) / call.heads()][place.key]))
      .item<double>();
}

// Removes parts that are zero.
void leave_out_zeros(ScoreParts& made, const ResidualParts& parts) {
  const auto kept = [&](const Tensor& vectors, std::vector<std::string>& names) {
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < vectors.size(0); ++i) {
      if (vectors[i].abs().max().item<double>() == 0) continue;
      chosen.push_back(i);
      names.push_back(parts.names[static_cast<size_t>(i)]);
    }
    return at::tensor(chosen, at::kLong);
  };
  made.parts = made.parts.index_select(0, kept(parts.queries, made.queries))
                   .index_select(1, kept(parts.keys, made.keys));
}

// Adds the bias of the attention as a part of both sides.
void add_bias(ScoreParts& made, double bias) {
  made.parts = at::constant_pad_nd(made.parts, {0, 1, 0, 1});
  made.parts[-1][-1] = bias;
  for (auto* names : {&made.queries, &made.keys}) names->emplace_back("attention bias");
}

}  // namespace

ScoreParts score_parts(const Explanation& explanation, const std::string& name) {
  const at::NoGradGuard not_recorded;
  const Subject& subject = explanation.subject();
  const NetworkTrace& trace = explanation.trace(TraceParts::attentions);
  const AttentionHead edge = edge_of(name, trace);
  const TracedAttention& attention = attention_at(trace, edge.site);
  const auto [call, head] = call_of(attention, edge.head);
  check_product(call);
  const LayerMap map = map_of(subject, attention);
  const HeadPlace place{edge.site, edge.head, edge.queries->first - 1, edge.keys->first - 1};
  if (place.query >= std::ssize(map.rows) || place.key >= std::ssize(map.columns))
    fail("at {}: no such positions; {} has {} queries and {} keys", in_quotes(name),
         attention_key(edge.site), map.rows.size(), map.columns.size());
  ScoreParts made{fmt::format("{}.head.{}", attention_key(edge.site), edge.head + 1),
                  map.rows[static_cast<size_t>(place.query)],
                  map.columns[static_cast<size_t>(place.key)]};
  made.weight = map.weights[edge.head][place.query][place.key].item<double>();
  made.score =
      with_heads(attention_scores(call.query, call.key, call.spec))[0][head][place.query][place.key]
          .item<double>();
  if (!std::isfinite(made.score))
    fail("at {}: this query does not read this key; choose another key", in_quotes(name));
  const ResidualParts parts = residual_parts(subject, place);
  const double factor = call.spec.score.scale(call.query.size(-1));
  made.parts = parts.queries.matmul(parts.keys.t()) * factor;
  leave_out_zeros(made, parts);
  if (!call.spec.bias.terms.empty())
    add_bias(made, made.score - product_of(call, head, place) * factor);
  return made;
}

}  // namespace attend
