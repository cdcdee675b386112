#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/array_input.h"
#include "attend/cli/commands.h"
#include "attend/cli/compute_graph.h"
#include "attend/cli/compute_inputs.h"
#include "attend/cli/output_file.h"
#include "attend/files/npz.h"
#include "attend/files/tensor_json.h"
#include "attend/mechanisms/compute_gradients.h"
#include "attend/mechanisms/worked_example.h"
#include "attend/pictures/graph_files.h"

namespace attend {
namespace {

using at::Tensor;
using nlohmann::json;

struct ComputeOptions {
  ComputeFiles files;
  bool weights = false;
  bool scores = false;
  bool steps = false;
  bool as_json = false;
  std::string out;
  std::string graph, labels;
};

NamedTensors compute(const ComputeProblem& problem, const ComputeOptions& options) {
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
  if (problem.context_gradient.defined()) arrays.merge(compute_gradients(problem));
  return arrays;
}

json summary(const NamedTensors& arrays, const ComputeProblem& problem,
             const ComputeOptions& options) {
  json described = json::object();
  for (const auto& [name, tensor] : arrays)
    described[name] = {{"dtype", dtype_name(tensor.scalar_type())},
                       {"shape", tensor.sizes().vec()}};
  return {{"mechanism", options.files.mechanism},
          {"score", problem.choices.score},
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

void run(const ComputeOptions& options) {
  check_results_name(options.out);
  const ComputeProblem problem = read_problem(options.files);
  const bool prints = problem.only_json || options.as_json || options.steps;
  if (options.out.empty() && options.graph.empty() && !prints)
    fail("--out is missing: name an .npz file, or print with --json or --steps");
  if (!options.graph.empty()) write_graph(problem, options.graph, options.labels);
  if (options.out.empty() && !prints) return;
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

constexpr const char* compute_footer =
    R"(Inputs have two axes [T, D], three [batch, T, D] or four [batch, heads, T, D]. They are
.npy files or .json files of nested lists; numbers take the dtype of the .npy files, else float64.
Results: context, lse (the log-normaliser of each query) and the arrays that options add.
Without --out, results of .json inputs are printed as one JSON object of nested lists, with the
strings "-inf", "inf" and "nan" for values that JSON cannot write as numbers.
With --out, --json prints: mechanism, score, scope, bias, normaliser, dtype, out, arrays (name:
dtype, shape).
Scores and normalisers that depend on earlier queries (location_sensitive, coverage, monotonic)
process the queries one by one.
A bias reads --param BIAS_TENSOR: alibi_slopes, buckets_table, dense_bias.

Examples:
  attend compute --query q.npy --key k.npy --value v.npy --scope causal --out result.npz
  attend compute --query q.json --key k.json --value v.json --steps
  attend compute --query q.npy --key k.npy --value v.npy --score additive --param v=v_a.npy \
    --param W_q=w_q.npy --key-lengths n.npy --grad dcontext.npy --out result.npz
  attend compute --query last.npy --key k.npy --value v.npy --scope causal --bias alibi \
    --align last --out result.npz    (new queries after cached keys)
  attend compute --query q.npy --key k.npy --value v.npy --bias alibi --bias buckets:32 \
    --param buckets_table=t.npy --normaliser sparsemax --weights --out result.npz
  attend compute --query q.npy --key k.npy --value v.npy --mechanism local_p --scope around:3 \
    --param W=w.npy --param centre_W_p=w_p.npy --param centre_v_p=v_p.npy --steps
  attend compute --query x.npy --key x.npy --value x.npy --graph map.dot --labels words.txt
  attend mechanisms         lists mechanisms, scores, scopes, biases and normalisers
  attend mechanisms local_p lists the parameters of a mechanism and their shapes)";

// Names of a table's rows for help texts.
template <class Rows, class Text>
std::string listed(const Rows& rows, Text text) {
  std::vector<std::string_view> all;
  all.reserve(rows.size());
  for (const auto& row : rows) all.push_back(text(row));
  return fmt::format("{}", fmt::join(all, ", "));
}

void add_files(CLI::App& command, ComputeFiles& files) {
  command.add_option("--query", files.query, "queries")->required()->type_name("FILE");
  command.add_option("--key", files.key, "keys")->required()->type_name("FILE");
  command.add_option("--value", files.value, "values")->required()->type_name("FILE");
  command
      .add_option("--param", files.parameters,
                  "a parameter of the mechanism, score or bias; repeatable")
      ->type_name("NAME=FILE|NUMBER")
      ->allow_extra_args(false);
  command
      .add_option("--key-lengths", files.key_lengths, "number of keys before the padding, [batch]")
      ->type_name("FILE");
  command
      .add_option("--query-lengths", files.query_lengths,
                  "number of queries before the padding, [batch]; padded queries attend to nothing")
      ->type_name("FILE");
  command
      .add_option(
          "--align", files.align,
          "first: query 0 is at key 0; last: the last query is at the last key, by the lengths of "
          "each batch element. Scopes, biases and position encodings use these positions")
      ->type_name("first|last");
  command
      .add_option("--query-offsets", files.query_offsets,
                  "offset added to the positions of the queries, [batch]")
      ->type_name("FILE");
  command
      .add_option(
          "--mask", files.mask,
          "mask: true if a query may attend to a key; broadcast to [batch, heads, queries, keys]")
      ->type_name("FILE");
  command
      .add_option("--edges", files.edges,
                  "edges of a graph, [2, edges]: keys (sources) and the queries (targets) that may "
                  "attend to them")
      ->type_name("FILE");
  command
      .add_option("--grad", files.context_gradient,
                  "gradient of the context: adds grad_query, grad_key, grad_value and grad_NAME "
                  "for each parameter")
      ->type_name("FILE");
}

void add_choices(CLI::App& command, ComputeFiles& files) {
  command
      .add_option(
          "--mechanism", files.mechanism,
          "mechanism, as attend mechanisms lists it: sets the choices below that no option sets")
      ->type_name("NAME");
  const auto name = [](const auto& row) { return row.name; };
  const auto syntax = [](const auto& row) { return row.syntax; };
  command
      .add_option("--score", files.score,
                  fmt::format("one of {}; default: scaled_dot", listed(score_table(), name)))
      ->type_name("NAME");
  std::vector<ScopeRow> scopes;
  for (const ScopeRow& row : scope_table())
    if (row.parse) scopes.push_back(row);
  command
      .add_option("--scope", files.scopes,
                  fmt::format("{}, around:D; several intersect", listed(scopes, syntax)))
      ->type_name("SCOPE")
      ->allow_extra_args(false);
  command
      .add_option("--bias", files.biases,
                  fmt::format("{}; several add up", listed(bias_table(), name)))
      ->type_name("BIAS")
      ->allow_extra_args(false);
  command
      .add_option("--normaliser", files.normaliser,
                  fmt::format("{}; default: softmax", listed(normaliser_table(), syntax)))
      ->type_name("NAME");
  command.add_option(
      "--seed", files.seed,
      "random seed for hard and gumbel; 0, the default: they take the largest score");
  command
      .add_option("--soft-cap", files.soft_cap,
                  "scores become C tanh(score / C) before the bias; 0, the default: off")
      ->type_name("C");
}

}  // namespace

void add_compute_command(CLI::App& app) {
  auto options = std::make_shared<ComputeOptions>();
  CLI::App* command =
      app.add_subcommand("compute", "Compute attention for queries, keys and values in files");
  add_files(*command, options->files);
  add_choices(*command, options->files);
  command->add_flag("--weights", options->weights, "add the weights");
  command->add_flag("--scores", options->scores, "add the scores, -inf outside the scope");
  add_output_file(*command, "--out", options->out, "the .npz file to write");
  add_output_file(*command, "--graph", options->graph,
                  "write the weights of self-attention as a graph, to a file that ends in " +
                      listed_graph_files());
  command->add_option("--labels", options->labels, "names of the graph's nodes, one per line")
      ->type_name("FILE");
  CLI::Option* as_json = command->add_flag("--json", options->as_json, "print one JSON object");
  command->add_flag("--steps", options->steps, "print the computation step by step")
      ->excludes(as_json);
  command->footer(compute_footer);
  command->callback([options] { run(*options); });
}

}  // namespace attend
