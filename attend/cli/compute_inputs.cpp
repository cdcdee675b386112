#include "attend/cli/compute_inputs.h"

#include <charconv>
#include <cmath>

#include "attend/base/error.h"
#include "attend/base/file_formats.h"
#include "attend/files/npy.h"
#include "attend/files/tensor_json.h"
#include "attend/nn/mechanism_table.h"

namespace attend {
namespace {

using at::Tensor;

struct Input {
  std::string origin;  // the file, or the option with a number
  Tensor tensor;
  bool is_json;
};

// File type of arrays, by its suffix.
struct ArrayFile {
  std::string_view suffix, note;
  Tensor (*read)(const std::string& path);
  bool is_json;
};

const std::vector<ArrayFile>& array_files() {
  static const std::vector<ArrayFile> table = {
      {".npy", "", [](const std::string& path) { return read_npy(path); }, false},
      {".json", "", [](const std::string& path) { return read_tensor_json(path); }, true}};
  return table;
}

Input read_input(const std::string& path, const char* option) {
  const ArrayFile* file = format_of(array_files(), path);
  if (!file)
    fail("{} {}: the name must end in {}", option, in_quotes(path),
         listed_formats(array_files(), [](const ArrayFile&) { return true; }));
  return {path, file->read(path), file->is_json};
}

std::optional<double> as_number(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

// Inputs by parameter name.
std::map<std::string, Input> read_parameters(const std::vector<std::string>& assignments) {
  std::map<std::string, Input> parameters;
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == assignment.size())
      fail("--param {}: write NAME=FILE or NAME=NUMBER", in_quotes(assignment));
    const std::string name = assignment.substr(0, equals);
    const std::string source = assignment.substr(equals + 1);
    const auto number = as_number(source);
    Input input = number ? Input{"--param " + in_quotes(assignment),
                                 at::scalar_tensor(*number, at::kDouble), true}
                         : read_input(source, "--param");
    if (!parameters.emplace(name, std::move(input)).second)
      fail("--param {}: is given twice", in_quotes(name));
  }
  return parameters;
}

// The dtype of the .npy files; float64 if there are none.
at::ScalarType common_dtype(const std::vector<const Input*>& inputs) {
  const Input* first = nullptr;
  for (const Input* input : inputs) {
    const at::ScalarType type = input->tensor.scalar_type();
    if (input->is_json) continue;
    if (!at::isFloatingType(type))
      fail("{}: has dtype {}; save it as float32 or float64", input->origin, dtype_name(type));
    if (!first) first = input;
    if (type != first->tensor.scalar_type())
      fail("{}: has dtype {}, {} {}; save both alike", input->origin, dtype_name(type),
           first->origin, dtype_name(first->tensor.scalar_type()));
  }
  return first ? first->tensor.scalar_type() : at::kDouble;
}

Tensor as_numbers(const Input& input, at::ScalarType dtype) {
  if (input.tensor.scalar_type() == at::kBool)
    fail("{}: holds true and false; give numbers", input.origin);
  return input.tensor.to(dtype);
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

std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "float64";
    case at::kFloat:
      return "float32";
    case at::kHalf:
      return "float16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(type);
  }
}

// Error if an array lacks the axes of queries, keys or values.
void check_axes(const Input& input, const char* name) {
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
  const Input query = read_input(files.query, "--query");
  const Input key = read_input(files.key, "--key");
  const Input value = read_input(files.value, "--value");
  check_axes(query, "query");
  check_axes(key, "key");
  check_axes(value, "value");
  const auto parameters = read_parameters(files.parameters);
  std::optional<Input> gradient;
  if (!files.context_gradient.empty()) gradient = read_input(files.context_gradient, "--grad");

  std::vector<const Input*> inputs = {&query, &key, &value};
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
  for (const Input* input : inputs) problem.only_json = problem.only_json && input->is_json;
  return problem;
}

}  // namespace attend
