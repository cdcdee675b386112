#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "attend/base/error.h"
#include "attend/ops/arithmetic-inl.h"
#include "attend/ops/axes-inl.h"
#include "attend/ops/bias_parts.h"
#include "attend/ops/cpu_problem-inl.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/linear-inl.h"
#include "attend/ops/lower-inl.h"
#include "attend/ops/sequential-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

void check_one(const Tensor& tensor, const Tensor& query, const char* name) {
  if (!tensor.defined()) fail("[attention] {} is undefined", name);
  if (!at::isFloatingType(tensor.scalar_type()))
    fail("[attention] {} has dtype {}; it must be floating point", name,
         c10::toString(tensor.scalar_type()));
  if (tensor.scalar_type() != query.scalar_type())
    fail("[attention] {} has dtype {}, query {}; they must match", name,
         c10::toString(tensor.scalar_type()), c10::toString(query.scalar_type()));
  if (tensor.device() != query.device())
    fail("[attention] {} is on {}, query on {}; they must match", name, tensor.device().str(),
         query.device().str());
  if (tensor.dim() != query.dim() || tensor.dim() < 2 || tensor.dim() > 4)
    fail("[attention] {} has shape {}, query {}; all must have 2, 3 or 4 axes, the same number",
         name, shape_of(tensor), shape_of(query));
}

void check_depth(const Tensor& tensor, const char* name) {
  if (tensor.size(-1) == 0)
    fail("[attention] {} has shape {}; its depth, the last axis, must be 1 or more", name,
         shape_of(tensor));
}

void check_pair(const Tensor& query, const Tensor& key) {
  check_one(query, query, "query");
  check_one(key, query, "key");
  check_depth(query, "query");
  check_depth(key, "key");
  if (query.dim() >= 3 && key.size(0) != query.size(0))
    fail("[attention] key has batch {}, query {}; they must match", key.size(0), query.size(0));
  if (query.dim() != 4) return;
  if (key.size(1) == 0 || query.size(1) == 0 || query.size(1) % key.size(1) != 0)
    fail("[attention] key has {} heads, query {}; the first must divide the second, neither be 0",
         key.size(1), query.size(1));
}

void check_value(const Tensor& query, const Tensor& key, const Tensor& value) {
  check_one(value, query, "value");
  for (int64_t axis = 0; axis + 1 < key.dim(); ++axis) {
    if (value.size(axis) != key.size(axis))
      fail("[attention] value has shape {}, key {}; all axes but the last must match",
           shape_of(value), shape_of(key));
  }
}

// Converts all three to the widest of their dtypes, if autocast mixed them.
std::tuple<Tensor, Tensor, Tensor> as_widest(const Tensor& query, const Tensor& key,
                                             const Tensor& value) {
  std::optional<at::ScalarType> widest;
  for (const Tensor* x : {&query, &key, &value}) {
    if (!x->defined() || !at::isFloatingType(x->scalar_type())) continue;
    widest = widest ? at::promote_types(*widest, x->scalar_type()) : x->scalar_type();
  }
  const auto widened = [&](const Tensor& x) {
    return x.defined() && at::isFloatingType(x.scalar_type()) ? x.to(*widest) : x;
  };
  return {widened(query), widened(key), widened(value)};
}

// The linear normaliser divides by the sum of the scores, which must be positive.
void check_linear(const AttentionSpec& spec) {
  if (!spec.normaliser.row().running_sums) return;
  const ScoreRow& row = spec.score.row();
  // Features of the caller's own use the plain product.
  const bool may_be_features = row.is_plain && row.family == Family::dot;
  if (row.features == Features::any && !may_be_features)
    fail(
        "[attention] normaliser linear divides by the sum of the scores, and scores of {} may be "
        "negative; take elu_features, positive_features, or dot of your own features",
        row.name);
  if (!spec.bias.terms.empty())
    fail(
        "[attention] normaliser linear divides by the sum of the scores, which a bias could make "
        "negative; leave the bias out, or take softmax");
}

void check_choices(const AttentionSpec& spec) {
  if (!(spec.soft_cap >= 0) || std::isinf(spec.soft_cap))
    fail("[attention] soft_cap is {}; it must be positive, or 0 for none", spec.soft_cap);
  if (!(spec.dropout.probability >= 0 && spec.dropout.probability < 1))
    fail("[attention] dropout has probability {}; it must be at least 0 and below 1",
         spec.dropout.probability);
  check_linear(spec);
}

// Converts the parameters to dtype `kept`.
Score score_in_precision(const Score& score, at::ScalarType kept, const LoweredSpec& lowered_spec) {
  const auto is_kept = [&](const auto& entry) { return entry.second.scalar_type() == kept; };
  if (std::all_of(score.parameters().begin(), score.parameters().end(), is_kept)) return score;
  Parameters parameters;
  for (const auto& [name, tensor] : score.parameters()) {
    if (!is_taken(tensor.scalar_type(), lowered_spec))
      fail("[attention] parameter {} of score {} has dtype {}, query {}; they must match", name,
           score.row().name, c10::toString(tensor.scalar_type()),
           c10::toString(lowered_spec.stored));
    parameters.emplace(name, tensor.to(kept));
  }
  return Score(score.row().name, std::move(parameters));
}

// The parameter of the normaliser, [H]; undefined if the row takes no parameter.
Tensor normaliser_parameter(const Normaliser& normaliser, const Parts& parts,
                            const LoweredSpec& lowered_spec) {
  const auto& row = normaliser.row().parameter;
  if (!row) return {};
  if (normaliser.parameter().defined())
    return per_head(normaliser.parameter(), row->name.data(), parts, lowered_spec);
  const at::ScalarType precision = at::toOpMathType(lowered_spec.stored);
  return at::full({lowered_spec.heads}, parameter_if_absent(normaliser),
                  parts[part::query].options().dtype(precision));
}

// Factors of the scores of each query, [B, H, Tq]: the dot family multiplies its queries.
void multiply_scores(const Tensor& parameter, Parts& parts, const LoweredSpec& lowered_spec) {
  const NormaliserRow& row = *lowered_spec.normaliser;
  const Tensor keys = keys_in_scope(lowered_spec).to(parameter.options());
  const Tensor factors = row.factor(keys, parameter.view({1, -1, 1}), lowered_spec.options.number);
  if (lowered_spec.score->family == Family::dot)
    parts[part::query] = parts[part::query] * factors.unsqueeze(-1);
  else
    parts[part::factors] = factors;
}

void add_normaliser(const Normaliser& normaliser, Parts& parts, const LoweredSpec& lowered_spec) {
  const Tensor parameter = normaliser_parameter(normaliser, parts, lowered_spec);
  if (!parameter.defined()) return;
  if (normaliser.row().factor) return multiply_scores(parameter, parts, lowered_spec);
  const Tensor off = at::logical_or(parameter.detach() <= 1, parameter.detach() > 4);
  if (off.device().is_cpu() && off.any().item<bool>())
    fail("[attention] {} of normaliser {} must be above 1 and at most 4; one is not",
         normaliser.row().parameter->name, normaliser.row().name);
  parts[part::alphas] = parameter;
}

// Maps queries and keys; each head of keys or values serves a group of query heads. Returns the
// parameters as applied.
Parameters map_inputs(const Tensor& query, const Tensor& key, const Tensor& value,
                      const Score& given, Parts& parts, LoweredSpec& lowered_spec,
                      bool for_later_queries) {
  const at::ScalarType stored = query.scalar_type(), precision = at::toOpMathType(stored);
  // Mapped inputs and float32 parameters are not rounded to 16 bits again.
  const bool multiplies = lowered_spec.normaliser->factor != nullptr;
  const bool as_stored = given.leaves_inputs() && !given.row().map_past && !multiplies;
  const at::ScalarType kept = as_stored ? stored : precision;
  const Score score = score_in_precision(given, precision, lowered_spec);
  const Tensor q = with_four_axes(query).to(kept);
  Tensor k = with_four_axes(key).to(kept);
  Tensor v = value.defined() ? with_four_axes(value).to(kept)
                             : k.new_empty({k.size(0), k.size(1), k.size(2), 0});
  // Shared keys are mapped once per group, unless each head has its own map.
  if (score.heads() && !as_stored) {
    k = repeat_heads(k, q.size(1));
    v = repeat_heads(v, q.size(1));
  }
  const bool shifted = shifts_features(lowered_spec);
  const bool as_features = score.row().features == Features::logarithms && !shifted;
  parts[part::query] = as_features ? score.map_query(q) : score.query_before_exp(q);
  parts[part::key] = as_stored ? k : as_features ? score.map_key(k) : score.key_before_exp(k);
  parts[part::value] = v;
  check_pairs(score, parts[part::query], parts[part::key]);
  if (const Tensor vector = score.of_pairs(); vector.defined())
    parts[part::vector] = vector.to(precision);
  lowered_spec.score = &score.row();
  lowered_spec.scale = score.scale(query.size(-1));
  if (shifted) shift_features(parts, lowered_spec, for_later_queries);
  return score.parameters();
}

void add_sink(const Tensor& sink, Parts& parts, const LoweredSpec& lowered_spec) {
  if (!sink.defined()) return;
  if (!lowered_spec.normaliser->takes_sink)
    fail("[attention] the sink takes part in a softmax; the normaliser is {}",
         lowered_spec.normaliser->name);
  parts[part::sinks] = per_head(sink, "sink", parts, lowered_spec);
}

// softmax(s / T) equals the softmax of scores with every part divided by T.
void fold_temperature(Parts& parts, LoweredSpec& lowered_spec) {
  const double temperature = folded_temperature(lowered_spec);
  if (temperature == 1) return;
  lowered_spec.scale /= temperature;
  lowered_spec.soft_cap /= temperature;
  for (const auto index :
       {part::dense, part::slopes, part::relative, part::sinks, part::edges, part::query_sums,
        part::key_sums, part::query_products, part::key_products})
    if (parts[index].defined()) parts[index] = parts[index] / temperature;
  if (parts[part::widths].defined())
    parts[part::widths] = parts[part::widths] * std::sqrt(temperature);
}

// Returns [B, H, Tk]; empty if the spec does not look back.
PastWeights past_of(const PastWeights& given, const Tensor& query, const Parts& parts,
                    const LoweredSpec& lowered_spec) {
  if (!lowered_spec.score->map_past && !lowered_spec.normaliser->sequential) return {};
  const auto one = [&](const Tensor& weights, const char* name) -> Tensor {
    if (!weights.defined()) return {};
    std::vector<int64_t> wanted = {lowered_spec.batch, lowered_spec.heads, lowered_spec.keys};
    if (query.dim() == 3) wanted.erase(wanted.begin() + 1);
    if (query.dim() == 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
    if (weights.sizes() != wanted)
      fail(
          "[attention] {} of the past has shape {}; it must have shape [{}], the weights of one "
          "query",
          name, shape_of(weights), fmt::join(wanted, ", "));
    return in_arithmetic(weights, name, parts, lowered_spec)
        .view({lowered_spec.batch, lowered_spec.heads, lowered_spec.keys});
  };
  return {one(given.previous, "previous"), one(given.total, "total")};
}

}  // namespace

double folded_temperature(const LoweredSpec& lowered_spec) {
  return lowered_spec.normaliser->temperature == Temperature::scores
             ? lowered_spec.options.temperature
             : 1.0;
}

void add_past(const Parameters& parameters, const PastWeights& past, Parts& parts,
              LoweredSpec& lowered_spec) {
  if (past.previous.defined()) lowered_spec.options.previous = past.previous.unsqueeze(2);
  if (!lowered_spec.score->map_past) return;
  const Tensor mapped = lowered_spec.score->map_past(past, parameters);
  if (!mapped.defined()) return;
  // The past differs between heads, even if they share keys and values.
  parts[part::key] = repeat_heads(parts[part::key], lowered_spec.heads) + mapped;
  parts[part::value] = repeat_heads(parts[part::value], lowered_spec.heads);
}

Lowered lower(const Tensor& given_query, const Tensor& given_key, const Tensor& given_value,
              const AttentionSpec& given, bool for_later_queries) {
  const bool autocast = autocast_enabled();
  const WithoutAutocast no_autocast;
  const auto [query, key, value] = autocast ? as_widest(given_query, given_key, given_value)
                                            : std::tuple(given_query, given_key, given_value);
  check_pair(query, key);
  if (value.defined()) check_value(query, key, value);
  check_choices(given);
  const Tensor q = with_four_axes(query);
  std::optional<AttentionSpec> moved;
  if (given.align != Align::first || given.query_offsets.defined())
    moved = placed(given, q.size(0), q.size(2), key.size(-2));
  const AttentionSpec& spec = moved ? *moved : given;
  Lowered lowered{{}, c10::make_intrusive<LoweredSpec>()};
  LoweredSpec& lowered_spec = *lowered.spec;
  lowered_spec.batch = q.size(0);
  lowered_spec.heads = q.size(1);
  lowered_spec.queries = q.size(2);
  lowered_spec.keys = key.size(-2);
  lowered_spec.stored = query.scalar_type();
  lowered_spec.autocast = autocast;
  lowered_spec.normaliser = &spec.normaliser.row();
  lowered_spec.options = spec.normaliser.options();
  lowered_spec.soft_cap = spec.soft_cap;
  lowered_spec.dropout = spec.dropout;
  lowered_spec.scope = chosen(with_four_axes(spec.scope, query.dim()), q, with_four_axes(key));
  check_scope(lowered_spec.scope, lowered_spec.batch, lowered_spec.heads, lowered_spec.queries,
              lowered_spec.keys);
  lowered.parameters =
      map_inputs(query, key, value, spec.score, lowered.parts, lowered_spec, for_later_queries);
  BiasParts bias(query.dim(), lowered.parts, lowered_spec);
  for (const BiasTermPointer& term : spec.bias.terms) term->add_to(bias);
  // After the biases, which compare queries that are not multiplied yet.
  add_normaliser(spec.normaliser, lowered.parts, lowered_spec);
  add_sink(spec.sink, lowered.parts, lowered_spec);
  fold_temperature(lowered.parts, lowered_spec);
  lowered.past = past_of(spec.past, query, lowered.parts, lowered_spec);
  if (runs_in_order(lowered) && lowered.parts[part::edges].defined())
    fail(
        "[attention] a bias of edges goes with all queries at once; the score or the normaliser "
        "has "
        "them run in order");
  if (!runs_in_order(lowered))
    add_past(lowered.parameters, lowered.past, lowered.parts, lowered_spec);
  return lowered;
}

}  // namespace attend
