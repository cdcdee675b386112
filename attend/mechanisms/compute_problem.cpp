#include "attend/mechanisms/compute_problem.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "attend/base/error.h"
#include "attend/base/settings.h"
#include "attend/ops/graph.h"

namespace attend {
namespace {

using at::Tensor;

Tensor given(const ComputeProblem& problem, std::string_view name) {
  const auto found = problem.parameters.find(name);
  return found == problem.parameters.end() ? Tensor() : found->second;
}

void check_parameters(const ComputeProblem& problem, const std::vector<ChoiceParameter>& wanted) {
  std::vector<std::string> names;
  names.reserve(wanted.size());
  for (const ChoiceParameter& one : wanted) {
    names.push_back(one.name);
    if (one.required && !given(problem, one.name).defined())
      fail("parameter {} [{}] is missing: {}; give it as --param {}=FILE{}", one.name, one.shape,
           one.meaning, one.name, one.axes == 0 ? " or a number" : "");
  }
  for (const auto& [name, tensor] : problem.parameters) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (names.empty())
      fail("--param {}: score {} has no parameters, and nothing else takes one", in_quotes(name),
           problem.choices.score);
    const std::string suggestion = nearest(name, names);
    if (!suggestion.empty())
      fail("--param {}: nothing takes it; did you mean {}?", in_quotes(name), suggestion);
    fail("--param {}: nothing takes it; the choices have {}", in_quotes(name),
         fmt::join(names, ", "));
  }
}

int64_t heads_of(const ComputeProblem& problem) {
  return problem.query.dim() == 4 ? problem.query.size(1) : 1;
}

// Error if the numbers of a choice, as in buckets:32, do not match its table; without numbers the
// table decides.
void check_numbers(const BiasChoice& choice, const Tensor& table) {
  const BiasRow& row = *choice.row;
  const int64_t axes = row.parameters.front().axes;
  if (choice.numbers.empty() || !row.numbers.sizes_table || table.dim() < axes) return;
  std::vector<int64_t> table_numbers;
  for (size_t i = 0; i < row.numbers.count; ++i)
    table_numbers.push_back((table.size(static_cast<int64_t>(i) - axes) - row.numbers.shift) /
                            row.numbers.factor);
  const std::vector<int64_t> asked(choice.numbers.begin(),
                                   choice.numbers.begin() + std::ssize(table_numbers));
  if (asked != table_numbers)
    fail("bias {0}:{1}: its table is one of {0}:{2}; change one of them", row.name,
         fmt::join(asked, "x"), fmt::join(table_numbers, "x"));
}

// p = S sigmoid(v_p . tanh(W_p q)), S the number of keys (Luong et al. 2015, eq. 9).
Tensor predicted_centres(const ComputeProblem& problem, const Tensor& query) {
  const Tensor W_p = given(problem, "centre_W_p"), v_p = given(problem, "centre_v_p");
  if (!W_p.defined() || !v_p.defined())
    fail(
        "scope {} has no centres: give --param centre_W_p=FILE and --param centre_v_p=FILE, which "
        "predict them, or --param gaussian_centres=FILE with --bias gaussian",
        problem.choices.scope);
  if (W_p.dim() < 2 || W_p.size(-1) != query.size(-1) || v_p.dim() < 1 ||
      v_p.size(-1) != W_p.size(-2))
    fail(
        "centre_W_p has shape [{}], centre_v_p [{}]; queries of depth {} want [depth, {}] and "
        "[depth]",
        fmt::join(W_p.sizes(), ", "), fmt::join(v_p.sizes(), ", "), query.size(-1), query.size(-1));
  const Tensor hidden = at::matmul(query, W_p.transpose(-2, -1)).tanh();
  const Tensor share = at::matmul(hidden, v_p.unsqueeze(-1)).squeeze(-1).sigmoid();
  if (!problem.key_lengths.defined()) return share * static_cast<double>(problem.key.size(-2));
  std::vector<int64_t> shape(static_cast<size_t>(share.dim()), 1);
  shape[0] = problem.key_lengths.size(0);
  return share * problem.key_lengths.to(share.options()).view(shape);
}

Tensor centres_of(const ComputeProblem& problem, const Tensor& query) {
  const Tensor centres = given(problem, "gaussian_centres");
  return centres.defined() ? centres : predicted_centres(problem, query);
}

// Tensors of a bias from the problem, by the names of its row.
Parameters given_tensors(const BiasRow& row, const ComputeProblem& problem) {
  Parameters tensors;
  for (const BiasParameter& one : row.parameters)
    tensors.emplace(one.name, given(problem, parameter_name(row, one)));
  return tensors;
}

// Computes defaults for absent slopes, factors, centres and widths.
void add_absent(const BiasRow& row, const ComputeProblem& problem, const Tensor& query,
                Parameters& tensors) {
  if (row.kind == BiasKind::alibi) {
    Tensor& slopes = tensors.begin()->second;
    if (!slopes.defined()) slopes = alibi_slopes(heads_of(problem)).to(query.options());
  }
  if (row.kind == BiasKind::sandwich) {
    Tensor& factors = tensors.begin()->second;
    if (!factors.defined()) factors = sandwich_factors(heads_of(problem)).to(query.options());
  }
  if (row.kind != BiasKind::gaussian) return;
  Tensor& centres = tensors.find(row.parameters[0].name)->second;
  Tensor& widths = tensors.find(row.parameters[1].name)->second;
  if (!centres.defined()) centres = predicted_centres(problem, query);
  if (!widths.defined())
    widths = at::full_like(centres,
                           static_cast<double>(around_reach(problem.choices.scope).value()) / 2);
}

Normaliser normaliser_of(const ComputeProblem& problem) {
  const Normaliser chosen(problem.choices.normaliser, static_cast<uint64_t>(problem.seed));
  if (!has_free_parameter(chosen)) return chosen;
  return chosen.with_parameter(given(problem, parameter_name(chosen.row())));
}

}  // namespace

Bias bias_of(const BiasChoice& choice, const ComputeProblem& problem, const Tensor& query,
             const Scope& scope) {
  Parameters tensors = given_tensors(*choice.row, problem);
  add_absent(*choice.row, problem, query, tensors);
  check_numbers(choice, tensors.find(choice.row->parameters.front().name)->second);
  return bias_of(
      *choice.row, tensors,
      {problem.query.dim(), !is_causal(scope), largest_distance(choice), first_number(choice)});
}

std::vector<ChoiceParameter> parameters_of(const ComputeProblem& problem) {
  std::vector<ChoiceParameter> parameters = parameters_of(problem.choices);
  if (const ComputeModule* module = compute_module(problem.mechanism))
    parameters.insert(parameters.end(), module->parameters.begin(), module->parameters.end());
  return parameters;
}

Attended attended(const ComputeProblem& problem) {
  const AttentionChoices& choices = problem.choices;
  check_parameters(problem, parameters_of(problem));
  Attended result{problem.query, problem.key, problem.value, {}};
  AttentionSpec& spec = result.spec;
  Parameters score_parameters;
  for (const ParameterRow& row : score_row(choices.score).parameters)
    score_parameters.emplace(row.name, given(problem, row.name));
  spec.score = Score(choices.score, std::move(score_parameters));
  const auto reach = around_reach(choices.scope);
  spec.scope = reach ? around(centres_of(problem, result.query).detach(), *reach)
                     : parse_scope(choices.scope);
  spec.scope = spec.scope & problem.scope;
  if (problem.key_lengths.defined()) spec.scope = spec.scope & key_lengths(problem.key_lengths);
  if (problem.edges.defined())
    spec.scope =
        spec.scope & edges(make_graph(problem.edges, result.query.size(-2), result.key.size(-2)));
  for (const BiasChoice& choice : parse_biases(choices.bias)) {
    if (choice.row->kind == BiasKind::sink)
      spec.sink = given_tensors(*choice.row, problem).begin()->second;
    spec.bias = spec.bias + bias_of(choice, problem, result.query, spec.scope);
  }
  spec.normaliser = normaliser_of(problem);
  spec.soft_cap = problem.soft_cap;
  spec.align = problem.align;
  spec.query_offsets = problem.query_offsets;
  if (const ComputeModule* module = compute_module(problem.mechanism))
    module->apply(problem.parameters, result);
  spec = placed(spec, result.query.dim() < 3 ? 1 : result.query.size(0), result.query.size(-2),
                result.key.size(-2));
  return result;
}

}  // namespace attend
