#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/compute_problem.h"
#include "attend/cli/worked_example.h"
#include "attend/data/npz.h"
#include "attend/data/tensor_json.h"

namespace attend {
namespace {

using at::Tensor;
using nlohmann::json;

struct Options {
  ComputeFiles files;
  bool weights = false;
  bool scores = false;
  bool steps = false;
  bool as_json = false;
  std::string out;
};

// The problem's inputs as variables to differentiate by, with the names of their gradients.
struct Variables {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;

  Tensor add(const std::string& name, const Tensor& tensor) {
    names.push_back("grad_" + name);
    tensors.push_back(tensor.detach().set_requires_grad(true));
    return tensors.back();
  }
};

NamedTensors gradients(const ComputeProblem& problem) {
  Variables variables;
  ComputeProblem varied = problem;
  varied.query = variables.add("query", problem.query);
  varied.key = variables.add("key", problem.key);
  varied.value = variables.add("value", problem.value);
  for (auto& [name, tensor] : varied.parameters) tensor = variables.add(name, tensor);
  const Attended given = attended(varied);
  const Tensor context = attention(given.query, given.key, given.value, given.spec).context;
  if (context.sizes() != problem.context_gradient.sizes())
    fail("--grad: has shape [{}], the context [{}]; they must match",
         fmt::join(problem.context_gradient.sizes(), ", "), fmt::join(context.sizes(), ", "));
  const auto found =
      torch::autograd::grad({context}, variables.tensors, {problem.context_gradient},
                            /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  NamedTensors named;
  for (size_t i = 0; i < found.size(); ++i) {
    // Not everything reaches the context: the location score reads no key, a drawn one no score.
    named[variables.names[i]] =
        found[i].defined() ? found[i] : at::zeros_like(variables.tensors[i]);
  }
  return named;
}

NamedTensors compute(const ComputeProblem& problem, const Options& options) {
  NamedTensors arrays;
  {
    const at::NoGradGuard no_gradients;
    const auto [query, key, value, spec] = attended(problem);
    const auto result = attention(query, key, value, spec);
    arrays["context"] = result.context;
    arrays["lse"] = result.lse;
    if (options.scores) arrays["scores"] = attention_scores(query, key, spec);
    if (options.weights) arrays["weights"] = attention_weights(query, key, result.lse, spec);
  }
  if (problem.context_gradient.defined()) arrays.merge(gradients(problem));
  return arrays;
}

json summary(const NamedTensors& arrays, const ComputeProblem& problem, const Options& options) {
  json described = json::object();
  for (const auto& [name, tensor] : arrays)
    described[name] = {{"dtype", dtype_name(tensor.scalar_type())},
                       {"shape", tensor.sizes().vec()}};
  return {{"score", problem.choices.score},
          {"scope", options.files.scopes},
          {"bias", options.files.biases},
          {"normaliser", problem.choices.normaliser},
          {"dtype", dtype_name(problem.query.scalar_type())},
          {"arrays", described},
          {"out", options.out}};
}

json values(const NamedTensors& arrays) {
  json all = json::object();
  for (const auto& [name, tensor] : arrays) all[name] = tensor_json(tensor);
  return all;
}

void print_line(const NamedTensors& arrays, const std::string& out) {
  std::vector<std::string> parts;
  for (const auto& [name, tensor] : arrays)
    parts.push_back(fmt::format("{} [{}]", name, fmt::join(tensor.sizes(), ", ")));
  fmt::print("{}: {}\n", out, fmt::join(parts, ", "));
}

void run(const Options& options) {
  if (!options.out.empty() && !options.out.ends_with(".npz"))
    fail("--out {}: the results are an .npz file; name it so", shown(options.out));
  const ComputeProblem problem = read_problem(options.files);
  if (options.out.empty() && !problem.only_json && !options.as_json && !options.steps)
    fail("--out is missing: name an .npz file, or print with --json or --steps");
  const NamedTensors arrays = compute(problem, options);
  if (!options.out.empty()) write_npz(options.out, arrays);
  if (options.steps)
    fmt::print("{}", worked_example(problem));
  else if (options.out.empty())
    fmt::print("{}\n", values(arrays).dump());
  else if (options.as_json)
    fmt::print("{}\n", summary(arrays, problem, options).dump());
  else
    print_line(arrays, options.out);
}

constexpr const char* footer =
    R"(Inputs have two axes [T, D], three [batch, T, D] or four [batch, heads, T, D]. They are
.npy files or .json files of nested lists; numbers take the dtype of the .npy files, else float64.
Results: context, lse (the log-normaliser of each query) and what the options add. Without --out,
results of .json inputs are printed as one JSON object of nested lists, in which the strings
"-inf", "inf" and "nan" stand for what JSON has no number for.
With --out, --json prints: score, scope, dtype, out, arrays (name: dtype, shape).

Examples:
  attend compute --query q.npy --key k.npy --value v.npy --scope causal --out result.npz
  attend compute --query q.json --key k.json --value v.json --steps
  attend compute --query q.npy --key k.npy --value v.npy --score additive --param v=v_a.npy \
    --param W_q=w_q.npy --key-lengths n.npy --grad dcontext.npy --out result.npz
  attend mechanisms   lists the scores with their parameters, and the scopes)";

}  // namespace

void add_compute_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  ComputeFiles& files = options->files;
  CLI::App* command =
      app.add_subcommand("compute", "Attention of the queries, keys and values in files");
  std::vector<std::string_view> scores, scopes;
  for (const ScoreRow& row : score_table()) scores.push_back(row.name);
  for (const ScopeRow& row : scope_table())
    if (row.parse) scopes.push_back(row.syntax);
  command->add_option("--query", files.query, "queries")->required()->type_name("FILE");
  command->add_option("--key", files.key, "keys")->required()->type_name("FILE");
  command->add_option("--value", files.value, "values")->required()->type_name("FILE");
  command->add_option("--score", files.score, fmt::format("one of {}", fmt::join(scores, ", ")))
      ->capture_default_str()
      ->type_name("NAME");
  command->add_option("--param", files.parameters, "a parameter of the score, may be repeated")
      ->type_name("NAME=FILE|NUMBER")
      ->allow_extra_args(false);
  command
      ->add_option("--scope", files.scopes,
                   fmt::format("{}; several intersect", fmt::join(scopes, ", ")))
      ->type_name("SCOPE")
      ->allow_extra_args(false);
  command->add_option("--key-lengths", files.key_lengths, "keys before the padding, [batch]")
      ->type_name("FILE");
  command
      ->add_option("--mask", files.mask,
                   "true where a query may attend, broadcast to [batch, heads, queries, keys]")
      ->type_name("FILE");
  command
      ->add_option("--grad", files.context_gradient,
                   "gradient of the context: adds grad_query, grad_key, grad_value and "
                   "grad_NAME of each parameter")
      ->type_name("FILE");
  command->add_flag("--weights", options->weights, "add the weights");
  command->add_flag("--scores", options->scores, "add the scores, -inf outside the scope");
  command->add_option("--out", options->out, "the .npz file to write")->type_name("FILE");
  CLI::Option* as_json = command->add_flag("--json", options->as_json, "print one JSON object");
  command->add_flag("--steps", options->steps, "print the computation step by step")
      ->excludes(as_json);
  command->footer(footer);
  command->callback([options] { run(*options); });
}

}  // namespace attend
