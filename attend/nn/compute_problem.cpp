#include "attend/nn/compute_problem.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "attend/base/error.h"
#include "attend/base/settings.h"

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
      fail("--param {}: score {} has no parameters, and nothing else takes one", quoted(name),
           problem.choices.score);
    const std::string suggestion = nearest(name, names);
    if (!suggestion.empty())
      fail("--param {}: nothing takes it; did you mean {}?", quoted(name), suggestion);
    fail("--param {}: nothing takes it; the choices have {}", quoted(name), fmt::join(names, ", "));
  }
}

int64_t heads_of(const ComputeProblem& problem) {
  return problem.query.dim() == 4 ? problem.query.size(1) : 1;
}

// buckets:32 says how many the table has; without a number the table does.
void check_argument(const BiasPart& part, const std::string& of_table) {
  if (!part.argument.empty() && part.argument != of_table)
    fail("bias {}:{}: its table is one of {}:{}; change one of them", part.name, part.argument,
         part.name, of_table);
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

Bias gaussian_bias(const ComputeProblem& problem, const Tensor& query) {
  const auto reach = around_reach(problem.choices.scope);
  const Tensor centres = centres_of(problem, query), widths = given(problem, "gaussian_widths");
  return gaussian(centres, widths.defined()
                               ? widths
                               : at::full_like(centres, static_cast<double>(reach.value()) / 2));
}

Bias bucket_bias(const BiasPart& part, const ComputeProblem& problem) {
  const Tensor table = given(problem, "buckets_table");
  const int64_t count = table.dim() == 0 ? 1 : table.size(-1);
  check_argument(part, std::to_string(count));
  // A query that sees no later key has no use for buckets of later ones.
  return buckets({.table = table,
                  .bidirectional = problem.looks_ahead,
                  .maximum_distance = std::max<int64_t>(128, count)});
}

Bias grid_bias(const BiasPart& part, const ComputeProblem& problem) {
  const Tensor table = given(problem, "grid_table");
  if (table.dim() >= 2)
    check_argument(part, fmt::format("{}x{}", (table.size(-2) + 1) / 2, (table.size(-1) + 1) / 2));
  return grid(table);
}

// One number a head, or one for all, in front of queries and keys.
Bias offset_bias(const ComputeProblem& problem) {
  const Tensor offset = given(problem, "offset");
  const bool by_head = offset.dim() == 1 && problem.query.dim() == 4;
  return dense_bias(by_head ? offset.view({1, -1, 1, 1}) : offset);
}

}  // namespace

Bias bias_of(const BiasPart& part, const ComputeProblem& problem, const Tensor& query) {
  if (part.name == "dense") return dense_bias(given(problem, "dense_bias"));
  if (part.name == "alibi") {
    const Tensor slopes = given(problem, "alibi_slopes");
    return alibi(slopes.defined() ? slopes : alibi_slopes(heads_of(problem)).to(query.options()));
  }
  if (part.name == "buckets") return bucket_bias(part, problem);
  if (part.name == "relative_keys") {
    const Tensor table = given(problem, "relative_keys_table");
    if (table.dim() >= 2) check_argument(part, std::to_string((table.size(-2) - 1) / 2));
    return relative_keys(table);
  }
  if (part.name == "gaussian") return gaussian_bias(problem, query);
  if (part.name == "grid") return grid_bias(part, problem);
  if (part.name == "offset") return offset_bias(problem);
  return {};  // the sink is none of the scores
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
  Parameters of_score;
  for (const ParameterRow& row : score_row(choices.score).parameters)
    of_score.emplace(row.name, given(problem, row.name));
  spec.score = Score(choices.score, std::move(of_score));
  const auto reach = around_reach(choices.scope);
  spec.scope = reach ? around(centres_of(problem, result.query).detach(), *reach)
                     : parse_scope(choices.scope);
  spec.scope = spec.scope & problem.scope;
  if (problem.key_lengths.defined()) spec.scope = spec.scope & key_lengths(problem.key_lengths);
  for (const BiasPart& part : bias_parts(choices.bias))
    spec.bias = spec.bias + bias_of(part, problem, result.query);
  spec.sink = given(problem, "sink");
  spec.normaliser = Normaliser(choices.normaliser, static_cast<uint64_t>(problem.seed));
  spec.soft_cap = problem.soft_cap;
  if (const ComputeModule* module = compute_module(problem.mechanism))
    module->apply(problem.parameters, result);
  return result;
}

}  // namespace attend
