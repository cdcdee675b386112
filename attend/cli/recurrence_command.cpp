#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "attend/cli/array_input.h"
#include "attend/cli/commands.h"
#include "attend/cli/output_file.h"
#include "attend/files/npz.h"
#include "attend/files/tensor_json.h"
#include "attend/mechanisms/compute_recurrence.h"

namespace attend {
namespace {

using at::Tensor;

struct RecurrenceOptions {
  std::string out;
  std::map<std::string, std::string> files;  // by the name of the array; "": not given
  RecurrenceProblem problem;
};

// An array of the command line.
struct ArrayOption {
  const char* name;
  const char* help;
  bool required;
};

constexpr ArrayOption array_options[] = {
    {"query", "queries, [batch, heads, tokens, depth]", true},
    {"key", "keys, the shape of the queries", true},
    {"value", "values, [batch, heads, tokens, value depth]", true},
    {"decay", "logarithms of the decays: [heads], [batch, heads, tokens] or with the depth", false},
    {"strength", "strengths b, [batch, heads, tokens]", false},
    {"bonus", "bonus c of the current token, [heads, depth]", false},
    {"initial", "state before the first token, [batch, heads, depth, value depth]", false},
    {"grad", "gradient of the output: adds grad_query and the others", false},
};

void run(const RecurrenceOptions& options) {
  check_results_name(options.out);
  std::map<std::string, ArrayInput> arrays;
  std::vector<const ArrayInput*> all;
  for (const ArrayOption& option : array_options) {
    const std::string& path = options.files.at(option.name);
    if (path.empty()) continue;
    const std::string flag = fmt::format("--{}", option.name);
    all.push_back(&arrays.emplace(option.name, read_input(path, flag.c_str())).first->second);
  }
  RecurrenceProblem problem = options.problem;
  const at::ScalarType dtype = common_dtype(all);
  for (const auto& [name, input] : arrays) problem.arrays[name] = as_numbers(input, dtype);
  const NamedTensors results = compute_recurrence(problem);
  if (options.out.empty()) {
    nlohmann::json printed = nlohmann::json::object();
    for (const auto& [name, tensor] : results) printed[name] = tensor_json(tensor);
    fmt::print("{}\n", printed.dump());
    return;
  }
  write_npz(options.out, results);
  std::vector<std::string> parts;
  for (const auto& [name, tensor] : results)
    parts.push_back(fmt::format("{} [{}]", name, fmt::join(tensor.sizes(), ", ")));
  fmt::print("{}: {}\n", options.out, fmt::join(parts, ", "));
}

constexpr const char* recurrence_footer =
    R"(Inputs are .npy files or .json files of nested lists. Numbers take the dtype of the .npy files, else
float64. Results are output, state (after the last token) and the arrays that options add. Without
--out they are printed as one JSON object. `attend mechanisms` lists the formulas.

Example:
  attend recurrence gated_delta --query q.npy --key k.npy --value v.npy --decay g.npy \
    --strength b.npy --l2-normalise --weights --out r.npz)";

}  // namespace

void add_recurrence_command(CLI::App& app) {
  auto options = std::make_shared<RecurrenceOptions>();
  CLI::App* command = app.add_subcommand(
      "recurrence", "Compute a linear recurrence for queries, keys and values in files");
  std::vector<std::string_view> names;
  names.reserve(recurrence_table().size());
  for (const RecurrenceRow& row : recurrence_table()) names.push_back(row.name);
  command
      ->add_option("name", options->problem.name, fmt::format("one of {}", fmt::join(names, ", ")))
      ->required();
  for (const ArrayOption& array : array_options) {
    CLI::Option* option = command->add_option(fmt::format("--{}", array.name),
                                              options->files[array.name], array.help);
    option->type_name("FILE");
    if (array.required) option->required();
  }
  command
      ->add_option("--scale", options->problem.scale, "factor of the output; default: depth^-1/2")
      ->type_name("X");
  command->add_flag("--l2-normalise", options->problem.l2_normalise,
                    "divide each query and key by its length");
  command->add_flag("--weights", options->problem.weights,
                    "add the weights w_ij in o_i = sum_j w_ij v_j");
  add_output_file(*command, "--out", options->out, "the .npz file to write");
  command->footer(recurrence_footer);
  command->callback([options] { run(*options); });
}

}  // namespace attend
