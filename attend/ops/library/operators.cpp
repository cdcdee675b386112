// torch.ops.attend.*: the operator for whoever loads libattend_operators.so, from Python with
// torch.ops.load_library or from C++.
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>

#include "attend/base/error.h"
#include "attend/ops/attention.h"

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

Scope scope_of(const std::string& text, const OptionalTensor& lengths, const OptionalTensor& mask,
               const OptionalTensor& starts) {
  Scope scope = parse_scope(text);
  if (lengths) scope = scope & key_lengths(*lengths);
  if (mask) scope = scope & dense_mask(*mask);
  if (starts) scope = scope & segments(*starts);
  return scope;
}

// By the names of the table of biases; the gaussian's two tensors by their own.
Bias bias_of(const c10::optional<Tensors>& given) {
  Bias bias;
  if (!given) return bias;
  if (given->contains("centres") != given->contains("widths"))
    fail("[attention] a gaussian bias has both centres and widths; one is missing");
  for (const auto& entry : *given) {
    const std::string& name = entry.key();
    if (name == "dense")
      bias = bias + dense_bias(entry.value());
    else if (name == "alibi")
      bias = bias + alibi(entry.value());
    else if (name == "buckets")
      bias = bias + buckets({.table = entry.value()});
    else if (name == "relative_keys")
      bias = bias + relative_keys(entry.value());
    else if (name == "grid")
      bias = bias + grid(entry.value());
    else if (name == "centres")
      bias = bias + gaussian(entry.value(), given->at("widths"));
    else if (name != "widths")
      fail(
          "[attention] no bias is called {}; there are dense, alibi, buckets, relative_keys, "
          "grid, and centres with widths",
          name);
  }
  return bias;
}

std::tuple<Tensor, Tensor> operator_attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::string& score,
    const c10::optional<Tensors>& parameters, const std::string& scope,
    const OptionalTensor& lengths, const OptionalTensor& mask, const OptionalTensor& starts,
    const c10::optional<Tensors>& bias, const std::string& normaliser, const OptionalTensor& sink,
    double soft_cap, double dropout, int64_t seed, const std::string& path) {
  const AttentionSpec spec = {.score = score_of(score, parameters),
                              .scope = scope_of(scope, lengths, mask, starts),
                              .bias = bias_of(bias),
                              .normaliser = Normaliser(normaliser),
                              .sink = sink.value_or(Tensor()),
                              .soft_cap = soft_cap,
                              .dropout = {dropout, static_cast<uint64_t>(seed)},
                              .path = path_of(path)};
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
                        c10::optional<int64_t> rows, const std::string& path) {
  const AttentionSpec spec = {.score = score_of(score, parameters),
                              .scope = scope_of(scope, lengths, mask, starts),
                              .bias = bias_of(bias),
                              .normaliser = Normaliser(normaliser),
                              .sink = sink.value_or(Tensor()),
                              .soft_cap = soft_cap,
                              .path = path_of(path)};
  Selection selection{.heads = heads.value_or(std::vector<int64_t>()), .first_row = first_row};
  if (rows) selection.rows = *rows;
  return attention_weights(query, key, lse, spec, selection);
}

}  // namespace

// Autograd follows what the functions call, so that one definition serves every dispatch key.
TORCH_LIBRARY(attend, library) {
  library.def(
      "attention(Tensor query, Tensor key, Tensor value, *, str score='scaled_dot', "
      "Dict(str, Tensor)? parameters=None, str scope='all', Tensor? key_lengths=None, "
      "Tensor? mask=None, Tensor? segments=None, Dict(str, Tensor)? bias=None, "
      "str normaliser='softmax', Tensor? sink=None, float soft_cap=0.0, float dropout=0.0, "
      "int seed=0, str path='automatic') -> (Tensor context, Tensor lse)",
      operator_attention);
  library.def(
      "attention_weights(Tensor query, Tensor key, Tensor lse, *, str score='scaled_dot', "
      "Dict(str, Tensor)? parameters=None, str scope='all', Tensor? key_lengths=None, "
      "Tensor? mask=None, Tensor? segments=None, Dict(str, Tensor)? bias=None, "
      "str normaliser='softmax', Tensor? sink=None, float soft_cap=0.0, int[]? heads=None, "
      "int first_row=0, int? rows=None, str path='automatic') -> Tensor",
      operator_weights);
}

}  // namespace attend
