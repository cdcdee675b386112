// torch.ops.attend.*: the operators of libattend_operators.so, loaded in Python with
// torch.ops.load_library or in C++.
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/recurrence.h"

namespace attend {
namespace {

using at::Tensor;
using Tensors = c10::Dict<std::string, Tensor>;
using OptionalTensor = c10::optional<Tensor>;

Path path_of(const std::string& name) {
  if (name == "automatic") return Path::automatic;
  if (name == "fused") return Path::fused;
  if (name == "composed") return Path::composed;
  fail("[attention] path is {}; it must be automatic, fused or composed", name);
}

Score score_of(const std::string& name, const c10::optional<Tensors>& given) {
  Parameters parameters;
  if (given)
    for (const auto& entry : *given) parameters.emplace(entry.key(), entry.value());
  return Score(name, std::move(parameters));
}

Scope scope_of(const std::string& text, const OptionalTensor& lengths,
               const OptionalTensor& lengths_of_queries, const OptionalTensor& mask,
               const OptionalTensor& starts, const OptionalTensor& edge_offsets,
               const OptionalTensor& edge_keys) {
  if (edge_offsets.has_value() != edge_keys.has_value())
    fail("[attention] a scope of edges has both edge_offsets and edge_keys; one is missing");
  Scope scope = parse_scope(text);
  if (lengths) scope = scope & key_lengths(*lengths);
  if (lengths_of_queries) scope = scope & query_lengths(*lengths_of_queries);
  if (mask) scope = scope & dense_mask(*mask);
  if (starts) scope = scope & segments(*starts);
  if (edge_offsets) scope = scope & edges(*edge_offsets, *edge_keys);
  return scope;
}

// Key of a tensor: the name of the bias if it has one tensor, otherwise both names, such as
// kerple_log_p; centres and widths of the gaussian have no prefix.
std::string key_of(const BiasRow& row, const BiasParameter& parameter) {
  if (row.parameters.size() == 1) return std::string(row.name);
  return row.kind == BiasKind::gaussian ? std::string(parameter.name)
                                        : parameter_name(row, parameter);
}

std::string first_key(const BiasRow& row) { return key_of(row, row.parameters.front()); }

[[noreturn]] void refuse_bias(std::string_view key) {
  std::vector<std::string> keys;
  for (const BiasRow& row : bias_table()) {
    if (row.kind == BiasKind::offset || row.kind == BiasKind::sink) continue;
    for (const BiasParameter& parameter : row.parameters) keys.push_back(key_of(row, parameter));
  }
  fail("[attention] no bias is called {}; there are {}", key, fmt::join(keys, ", "));
}

// With a causal scope, buckets for later keys are not needed. The largest distance is 128 as in T5,
// unless buckets of one distance each reach further.
Bias bucket_bias(const Tensor& table, bool look_ahead) {
  constexpr int64_t usual = 128;
  const int64_t count = table.dim() == 0 ? 1 : table.size(-1);
  return buckets({.table = table,
                  .bidirectional = look_ahead,
                  .maximum_distance = count / (look_ahead ? 4 : 2) < usual ? usual : count});
}

// Bias of the tensors of a row. The sink has its own argument, and an offset is dense.
Bias bias_of(const BiasRow& row, const Tensors& given, const Scope& scope) {
  const auto tensor = [&](size_t i) { return given.at(key_of(row, row.parameters[i])); };
  const Tensor first = tensor(0);
  switch (row.kind) {
    case BiasKind::dense:
      return dense_bias(first);
    case BiasKind::alibi:
      return alibi(first);
    case BiasKind::kerple_log:
      return kerple_log(first, tensor(1));
    case BiasKind::kerple_power:
      return kerple_power(first, tensor(1));
    case BiasKind::sandwich:
      return sandwich(first);
    case BiasKind::forget:
      return forget(first);
    case BiasKind::cope:
      return cope(first);
    case BiasKind::fire:
      return fire({first, tensor(1), tensor(2), tensor(3), tensor(4), tensor(5)});
    case BiasKind::buckets:
      return bucket_bias(first, !is_causal(scope));
    case BiasKind::relative_keys:
      return relative_keys(first);
    case BiasKind::content_to_position:
      return content_to_position({.table = first});
    case BiasKind::position_to_content:
      return position_to_content({.table = first});
    case BiasKind::gaussian:
      return gaussian(first, tensor(1));
    case BiasKind::grid:
      return grid(first);
    case BiasKind::offset:
    case BiasKind::sink:
      break;
  }
  refuse_bias(row.name);
}

const BiasRow& row_with_key(const std::string& key) {
  for (const BiasRow& row : bias_table())
    for (const BiasParameter& parameter : row.parameters)
      if (key_of(row, parameter) == key) return row;
  refuse_bias(key);
}

Bias bias_of(const c10::optional<Tensors>& given, const Scope& scope) {
  Bias bias;
  if (!given) return bias;
  for (const auto& entry : *given) {
    const BiasRow& row = row_with_key(entry.key());
    for (const BiasParameter& parameter : row.parameters)
      if (!given->contains(key_of(row, parameter)))
        fail("[attention] a {} bias takes several tensors, and one is missing: {}", row.name,
             key_of(row, parameter));
    if (entry.key() == first_key(row)) bias = bias + bias_of(row, *given, scope);
  }
  return bias;
}

AttentionSpec spec_of(const std::string& score, const c10::optional<Tensors>& parameters,
                      const Scope& scope, const c10::optional<Tensors>& bias,
                      const OptionalTensor& edge_terms, const Normaliser& normaliser,
                      const OptionalTensor& sink, const OptionalTensor& query_offsets,
                      const std::string& align) {
  Bias sum = bias_of(bias, scope);
  if (edge_terms) sum = sum + edge_bias(*edge_terms);
  return {.score = score_of(score, parameters),
          .scope = scope,
          .bias = sum,
          .normaliser = normaliser,
          .sink = sink.value_or(Tensor()),
          .align = parse_align(align),
          .query_offsets = query_offsets.value_or(Tensor())};
}

std::tuple<Tensor, Tensor> operator_attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::string& score,
    const c10::optional<Tensors>& parameters, const std::string& scope,
    const OptionalTensor& lengths, const OptionalTensor& mask, const OptionalTensor& starts,
    const c10::optional<Tensors>& bias, const std::string& normaliser, const OptionalTensor& sink,
    double soft_cap, double dropout, int64_t seed, const std::string& path,
    const OptionalTensor& lengths_of_queries, const OptionalTensor& query_offsets,
    const std::string& align, const OptionalTensor& edge_offsets, const OptionalTensor& edge_keys,
    const OptionalTensor& edge_terms, const OptionalTensor& of_normaliser) {
  const auto drawn_by = static_cast<uint64_t>(seed);
  AttentionSpec spec =
      spec_of(score, parameters,
              scope_of(scope, lengths, lengths_of_queries, mask, starts, edge_offsets, edge_keys),
              bias, edge_terms, Normaliser(normaliser, drawn_by, of_normaliser.value_or(Tensor())),
              sink, query_offsets, align);
  spec.soft_cap = soft_cap;
  spec.dropout = {dropout, drawn_by};
  spec.path = path_of(path);
  const auto [context, lse] = attention(query, key, value, spec);
  return {context, lse};
}

Tensor operator_weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                        const std::string& score, const c10::optional<Tensors>& parameters,
                        const std::string& scope, const OptionalTensor& lengths,
                        const OptionalTensor& mask, const OptionalTensor& starts,
                        const c10::optional<Tensors>& bias, const std::string& normaliser,
                        const OptionalTensor& sink, double soft_cap,
                        const c10::optional<std::vector<int64_t>>& heads, int64_t first_row,
                        c10::optional<int64_t> rows, const std::string& path, int64_t seed,
                        const OptionalTensor& lengths_of_queries,
                        const OptionalTensor& query_offsets, const std::string& align,
                        const OptionalTensor& edge_offsets, const OptionalTensor& edge_keys,
                        const OptionalTensor& edge_terms, const OptionalTensor& of_normaliser) {
  AttentionSpec spec =
      spec_of(score, parameters,
              scope_of(scope, lengths, lengths_of_queries, mask, starts, edge_offsets, edge_keys),
              bias, edge_terms,
              Normaliser(normaliser, static_cast<uint64_t>(seed), of_normaliser.value_or(Tensor())),
              sink, query_offsets, align);
  spec.soft_cap = soft_cap;
  spec.path = path_of(path);
  Selection selection{.heads = heads.value_or(std::vector<int64_t>()), .first_row = first_row};
  if (rows) selection.rows = *rows;
  return attention_weights(query, key, lse, spec, selection);
}

std::tuple<Tensor, Tensor> operator_recurrence(
    const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& decay,
    const OptionalTensor& strength, bool delta, c10::optional<double> scale, bool l2_normalise,
    const OptionalTensor& initial, const OptionalTensor& offsets, const OptionalTensor& bonus) {
  RecurrenceSpec spec;
  spec.decay = decay.value_or(Tensor());
  spec.strength = strength.value_or(Tensor());
  spec.delta = delta;
  if (scale) spec.scale = *scale;
  spec.l2_normalise = l2_normalise;
  spec.initial = initial.value_or(Tensor());
  spec.offsets = offsets.value_or(Tensor());
  spec.bonus = bonus.value_or(Tensor());
  const auto [output, state] = linear_recurrence(query, key, value, spec);
  return {output, state};
}

}  // namespace

// Autograd follows the called functions; one definition therefore serves every dispatch key.
TORCH_LIBRARY(attend, library) {
  library.def(
      "attention(Tensor query, Tensor key, Tensor value, *, str score='scaled_dot', "
      "Dict(str, Tensor)? parameters=None, str scope='all', Tensor? key_lengths=None, "
      "Tensor? mask=None, Tensor? segments=None, Dict(str, Tensor)? bias=None, "
      "str normaliser='softmax', Tensor? sink=None, float soft_cap=0.0, float dropout=0.0, "
      "int seed=0, str path='automatic', Tensor? query_lengths=None, Tensor? query_offsets=None, "
      "str align='first', Tensor? edge_offsets=None, Tensor? edge_keys=None, Tensor? "
      "edge_bias=None, Tensor? normaliser_parameter=None) -> (Tensor context, Tensor lse)",
      operator_attention);
  library.def(
      "attention_weights(Tensor query, Tensor key, Tensor lse, *, str score='scaled_dot', "
      "Dict(str, Tensor)? parameters=None, str scope='all', Tensor? key_lengths=None, "
      "Tensor? mask=None, Tensor? segments=None, Dict(str, Tensor)? bias=None, "
      "str normaliser='softmax', Tensor? sink=None, float soft_cap=0.0, int[]? heads=None, "
      "int first_row=0, int? rows=None, str path='automatic', int seed=0, "
      "Tensor? query_lengths=None, Tensor? query_offsets=None, str align='first', Tensor? "
      "edge_offsets=None, Tensor? edge_keys=None, Tensor? edge_bias=None, "
      "Tensor? normaliser_parameter=None) -> Tensor",
      operator_weights);
  library.def(
      "linear_recurrence(Tensor query, Tensor key, Tensor value, *, Tensor? decay=None, "
      "Tensor? strength=None, bool delta=False, float? scale=None, bool l2_normalise=False, "
      "Tensor? initial=None, Tensor? offsets=None, Tensor? bonus=None) -> (Tensor output, "
      "Tensor state)",
      operator_recurrence);
}

}  // namespace attend
