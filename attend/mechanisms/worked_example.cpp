#include "attend/mechanisms/worked_example.h"

#include <fmt/format.h>

#include <cmath>

#include "attend/mechanisms/compute_problem.h"
#include "attend/mechanisms/steps_text.h"
#include "attend/mechanisms/worked_weights.h"

namespace attend {
namespace {

using at::Tensor;

// First entry of all axes before the last `axes`.
Tensor first_of_axes(const Tensor& x, int64_t axes) {
  Tensor first = x;
  while (first.defined() && first.dim() > axes) first = first[0];
  return first;
}

Tensor first_entry(const Tensor& x) { return x.defined() ? x.narrow(0, 0, 1) : x; }

// First head of the first batch entry, with two axes.
ComputeProblem first_of(const ComputeProblem& problem) {
  ComputeProblem first = problem;
  first.query = first_of_axes(problem.query, 2).to(at::kDouble);
  first.key = first_of_axes(problem.key, 2).to(at::kDouble);
  first.value = first_of_axes(problem.value, 2).to(at::kDouble);
  for (const ChoiceParameter& one : parameters_of(problem)) {
    const auto found = first.parameters.find(one.name);
    if (found != first.parameters.end())
      found->second = first_of_axes(found->second, one.axes).to(at::kDouble);
  }
  first.key_lengths = first_entry(problem.key_lengths);
  first.query_offsets = first_entry(problem.query_offsets);
  first.scope = of_head(with_four_axes(problem.scope, problem.query.dim()), 0, 0);
  return first;
}

std::string heading(const ComputeProblem& problem) {
  const ScoreRow& row = score_row(problem.choices.score);
  std::string text;
  if (const Mechanism* named = problem.mechanism)
    text =
        fmt::format("{} {}: {}   ({})\n", named->name, named->title, named->formula, named->source);
  text += fmt::format("score {}: {}   ({})\n", row.name, row.formula, row.source);
  const auto sizes = problem.query.sizes();
  if (sizes.size() == 3) text += fmt::format("batch element 1 of {}\n", sizes[0]);
  if (sizes.size() == 4)
    text += fmt::format("batch element 1 of {}, head 1 of {}\n", sizes[0], sizes[1]);
  return text + '\n';
}

std::string pairwise_formula(const ScoreRow& row, bool query_is_mapped, bool key_is_mapped) {
  if (!row.family) return "q'_ij";
  switch (*row.family) {
    case Family::dot:
      if (query_is_mapped) return key_is_mapped ? "q'_i . k'_j" : "q'_i . k_j";
      return key_is_mapped ? "q_i . k'_j" : "q_i . k_j";
    case Family::additive:
      switch (row.activation) {
        case Activation::tanh:
          return "sum_a v_a tanh(q'_ia + k'_ja)";
        case Activation::sigmoid:
          return "sum_a v_a sigmoid(q'_ia + k'_ja)";
        case Activation::relu:
          return "sum_a v_a max(0, q'_ia + k'_ja)";
        case Activation::leaky_relu:
          return "sum_a v_a leaky_relu(q'_ia + k'_ja)";
      }
      return "";
    case Family::squared_distance:
      return "-sum_a (q_ia - k_ja)^2";
    case Family::absolute_distance:
      return "-sum_a |q_ia - k_ja|";
  }
  return "";
}

// Parameters of the mechanism's module, and queries, keys and values that it changes.
std::string module_steps(const ComputeProblem& problem, const Attended& given) {
  const ComputeModule* module = compute_module(problem.mechanism);
  if (!module) return "";
  std::string text;
  for (const ChoiceParameter& one : module->parameters) {
    const auto found = problem.parameters.find(one.name);
    if (found != problem.parameters.end()) text += step("Parameter " + one.name, found->second);
  }
  const std::string formula(module->formula);
  if (!given.query.equal(problem.query)) text += step("Queries, changed", given.query, formula);
  if (!given.key.equal(problem.key)) text += step("Keys, changed", given.key, formula);
  if (!given.value.equal(problem.value)) text += step("Values, changed", given.value, formula);
  return text;
}

// Steps from queries and keys to the scores before the bias. For a score that looks back, only the
// maps, which are common to all queries.
std::string score_steps(const Attended& given) {
  const Score& score = given.spec.score;
  if (score.row().scale) {
    const Tensor products = at::matmul(given.query, given.key.transpose(0, 1));
    const int64_t depth = given.query.size(1);
    return step("Scores S = Q K^T", products, "s_ij = q_i . k_j") +
           step(fmt::format("Scaled scores S / sqrt(D), D = {},", depth),
                attention_scores(given.query, given.key, {.score = score}),
                fmt::format("s_ij = q_i . k_j / {:.4f}", std::sqrt(static_cast<double>(depth))));
  }
  std::string text;
  for (const auto& [name, tensor] : score.parameters()) text += step("Parameter " + name, tensor);
  const Tensor query = score.map_query(given.query), key = score.map_key(given.key);
  const bool by_position = !score.row().family;
  const bool may_differ = score.row().family == Family::additive || by_position;
  const bool query_is_mapped = may_differ || !query.equal(given.query);
  const bool key_is_mapped = may_differ || !key.equal(given.key);
  if (query_is_mapped) text += step("Mapped queries Q'", query);
  if (key_is_mapped && !by_position) text += step("Mapped keys K'", key);
  if (score.row().map_past) return text;
  const std::string formula = pairwise_formula(score.row(), query_is_mapped, key_is_mapped);
  return text + step("Scores S", pairwise_scores(score, query, key), "s_ij = " + formula);
}

// The soft cap and each part of the bias.
std::string bias_steps(const ComputeProblem& problem, const Attended& given) {
  AttentionSpec spec{.score = given.spec.score, .soft_cap = given.spec.soft_cap};
  const Tensor bare = attention_scores(given.query, given.key, spec);
  const bool looks_back = spec.score.row().map_past != nullptr;
  std::string text;
  if (spec.soft_cap > 0 && !looks_back)
    text += step("Capped scores S", bare,
                 fmt::format("s_ij = {0:g} tanh(s_ij / {0:g})", spec.soft_cap));
  for (const BiasChoice& choice : parse_biases(problem.choices.bias)) {
    const AttentionSpec unplaced{.scope = given.spec.scope,
                                 .bias = bias_of(choice, problem, given.query, given.spec.scope),
                                 .align = problem.align,
                                 .query_offsets = problem.query_offsets};
    spec.bias = placed(unplaced, 1, given.query.size(0), given.key.size(0)).bias;
    if (spec.bias.terms.empty()) continue;
    if (choice.row->kind == BiasKind::gaussian) {
      const std::vector<Tensor> tensors = spec.bias.terms[0]->tensors();
      text += step("Centres p", tensors[0], "position that each query attends to") +
              step("Widths s", tensors[1].expand_as(tensors[0]));
    }
    text += step(fmt::format("Bias {} B", choice.row->name),
                 attention_scores(given.query, given.key, spec) - bare,
                 fmt::format("b_ij = {}", choice.row->formula));
  }
  spec.bias = given.spec.bias;
  if (!spec.bias.terms.empty() && !looks_back)
    text += step("Scores with bias", attention_scores(given.query, given.key, spec),
                 "s_ij + b_ij, from here on s_ij");
  if (given.spec.sink.defined())
    text += step("Sink", given.spec.sink.reshape({1}), "the score of a key without a value");
  return text;
}

}  // namespace

std::string worked_example(const ComputeProblem& problem) {
  const bool is_empty = problem.query.numel() == 0 && problem.query.dim() > 2 &&
                        (problem.query.size(0) == 0 || problem.query.size(1) == 0);
  if (is_empty) return heading(problem) + "Nothing to show: the batch is empty.\n";
  const ComputeProblem first = first_of(problem);
  const Attended given = attended(first);
  std::string text = heading(problem);
  text += step("Queries Q", first.query);
  text += step("Keys K", first.key);
  text += step("Values V", first.value);
  text += module_steps(first, given) + score_steps(given) + bias_steps(first, given) +
          weights_steps(given);
  text.pop_back();
  return text;
}

}  // namespace attend
