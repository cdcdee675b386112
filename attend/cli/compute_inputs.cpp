#include "attend/cli/compute_inputs.h"

#include <charconv>
#include <cmath>

#include "attend/base/error.h"
#include "attend/cli/array_input.h"
#include "attend/nn/mechanism_table.h"

namespace attend {
namespace {

using at::Tensor;

std::optional<double> as_number(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

// Inputs by parameter name.
std::map<std::string, ArrayInput> read_parameters(const std::vector<std::string>& assignments) {
  std::map<std::string, ArrayInput> parameters;
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == assignment.size())
      fail("--param {}: write NAME=FILE or NAME=NUMBER", in_quotes(assignment));
    const std::string name = assignment.substr(0, equals);
    const std::string source = assignment.substr(equals + 1);
    const auto number = as_number(source);
    ArrayInput input = number ? ArrayInput{"--param " + in_quotes(assignment),
                                           at::scalar_tensor(*number, at::kDouble), true}
                              : read_input(source, "--param");
    if (!parameters.emplace(name, std::move(input)).second)
      fail("--param {}: is given twice", in_quotes(name));
  }
  return parameters;
}

// One number per batch element.
Tensor read_whole_numbers(const std::string& path, const char* option, const char* what) {
  const Tensor numbers = read_input(path, option).tensor;
  if (!at::isIntegralType(numbers.scalar_type(), /*includeBool=*/false) || numbers.dim() > 1)
    fail("{}: holds {} of {} axes; {} are whole numbers, one per batch element", path,
         dtype_name(numbers.scalar_type()), numbers.dim(), what);
  return numbers.to(at::kLong).reshape({-1});
}

Scope read_mask(const std::string& path) {
  const Tensor mask = read_input(path, "--mask").tensor;
  const bool is_whole = at::isIntegralType(mask.scalar_type(), /*includeBool=*/true);
  if (!is_whole || !((mask == 0).logical_or(mask == 1)).all().item<bool>())
    fail("{}: a mask holds true and false, or 1 and 0", path);
  return dense_mask(mask.to(at::kBool));
}

Tensor read_edges(const std::string& path) {
  const Tensor pairs = read_input(path, "--edges").tensor;
  if (!at::isIntegralType(pairs.scalar_type(), /*includeBool=*/false) || pairs.dim() != 2)
    fail("{}: holds {} of {} axes; edges are whole numbers of shape [2, edges]", path,
         dtype_name(pairs.scalar_type()), pairs.dim());
  return pairs.to(at::kLong);
}

AttentionChoices read_choices(const ComputeFiles& files, const Mechanism* row) {
  AttentionChoices choices;
  if (row) choices = row->choices;
  if (!files.score.empty()) choices.score = files.score;
  if (!files.normaliser.empty()) choices.normaliser = files.normaliser;
  if (!files.scopes.empty()) choices.scope = files.scopes.front();
  if (!files.biases.empty()) choices.bias = fmt::format("{}", fmt::join(files.biases, " + "));
  return choices;
}

}  // namespace

// Error if an array lacks the axes of queries, keys or values.
void check_axes(const ArrayInput& input, const char* name) {
  if (input.tensor.dim() < 2 || input.tensor.dim() > 4)
    fail(
        "{}: the {} has shape [{}]; it must have 2, 3 or 4 axes: [positions, depth], with the "
        "batch and the heads before them",
        input.origin, name, fmt::join(input.tensor.sizes(), ", "));
}

ComputeProblem read_problem(const ComputeFiles& files) {
  if (files.seed < 0) fail("--seed {}: a seed is 0 or more", files.seed);
  if (!(files.soft_cap >= 0) || std::isinf(files.soft_cap))
    fail("--soft-cap {}: a cap is 0 or more", files.soft_cap);
  const ArrayInput query = read_input(files.query, "--query");
  const ArrayInput key = read_input(files.key, "--key");
  const ArrayInput value = read_input(files.value, "--value");
  check_axes(query, "query");
  check_axes(key, "key");
  check_axes(value, "value");
  const auto parameters = read_parameters(files.parameters);
  std::optional<ArrayInput> gradient;
  if (!files.context_gradient.empty()) gradient = read_input(files.context_gradient, "--grad");

  std::vector<const ArrayInput*> inputs = {&query, &key, &value};
  for (const auto& [name, input] : parameters) inputs.push_back(&input);
  if (gradient) inputs.push_back(&*gradient);
  const at::ScalarType dtype = common_dtype(inputs);

  ComputeProblem problem;
  problem.align = parse_align(files.align);
  problem.query = as_numbers(query, dtype);
  problem.key = as_numbers(key, dtype);
  problem.value = as_numbers(value, dtype);
  if (!files.mechanism.empty()) problem.mechanism = &mechanism(files.mechanism);
  problem.choices = read_choices(files, problem.mechanism);
  for (const auto& [name, input] : parameters)
    problem.parameters.emplace(name, as_numbers(input, dtype));
  if (!files.key_lengths.empty())
    problem.key_lengths = read_whole_numbers(files.key_lengths, "--key-lengths", "key lengths");
  if (!files.query_offsets.empty())
    problem.query_offsets =
        read_whole_numbers(files.query_offsets, "--query-offsets", "query offsets");
  for (size_t i = 1; i < files.scopes.size(); ++i)
    problem.scope = problem.scope & parse_scope(files.scopes[i]);
  if (!files.query_lengths.empty())
    problem.scope = problem.scope & query_lengths(read_whole_numbers(
                                        files.query_lengths, "--query-lengths", "query lengths"));
  if (!files.mask.empty()) problem.scope = problem.scope & read_mask(files.mask);
  if (!files.edges.empty()) problem.edges = read_edges(files.edges);
  problem.soft_cap = files.soft_cap;
  problem.seed = files.seed;
  if (gradient) problem.context_gradient = as_numbers(*gradient, dtype);
  for (const ArrayInput* input : inputs) problem.only_json = problem.only_json && input->is_json;
  return problem;
}

}  // namespace attend
