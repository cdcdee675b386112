#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/suffix.h"
#include "attend/cli/commands.h"
#include "attend/cli/output_file.h"
#include "attend/cli/progress.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"
#include "attend/models/gradient_flow.h"
#include "attend/pictures/chart.h"

namespace attend {
namespace {

struct GradientsOptions {
  std::vector<std::string> models;
  std::string data, out;
  int64_t examples = 1000;
  bool json = false;
};

struct ModelFlow {
  std::string name;
  bool trained;
  GradientFlow flow;

  std::string label() const { return name + (trained ? "" : ", untrained"); }
};

// Last part of the folder's path.
std::string name_of(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

std::vector<Example> examples_of(const GradientsOptions& options) {
  const Model model(options.models.at(0));
  auto examples = test_examples(model, {options.data}, model.text(), print_remark);
  if (static_cast<int64_t>(examples.size()) > options.examples)
    examples.resize(static_cast<size_t>(options.examples));
  return examples;
}

std::vector<ModelFlow> measure(const GradientsOptions& options) {
  const std::vector<Example> examples = examples_of(options);
  std::vector<ModelFlow> flows;
  flows.reserve(2 * options.models.size());
  CountPrinter printer("measured");
  for (const bool trained : {false, true}) {
    for (const std::string& folder : options.models) {
      flows.push_back({name_of(folder), trained, gradient_flow(folder, trained, examples)});
      printer.show(static_cast<int64_t>(flows.size()),
                   2 * static_cast<int64_t>(options.models.size()));
    }
  }
  return flows;
}

// Distances with fewer than 10 states would only show noise.
size_t shown_distances(const ModelFlow& model) {
  const auto few = std::find_if(model.flow.states.begin(), model.flow.states.end(),
                                [](int64_t states) { return states < 10; });
  return static_cast<size_t>(few - model.flow.states.begin());
}

std::string chart_of(const std::vector<ModelFlow>& flows) {
  Chart chart;
  chart.title = "How much of the loss reaches the encoder";
  chart.x_label = "tokens between the state and the end of the source";
  chart.y_label = "norm of d loss / d state";
  chart.y_from_zero = false;
  chart.y_powers_of_ten = true;
  for (const ModelFlow& model : flows) {
    ChartSeries& series = chart.series.emplace_back();
    series.name = model.label();
    for (size_t i = 0; i < shown_distances(model); ++i)
      series.points.push_back({static_cast<double>(i), std::log10(model.flow.norms[i])});
  }
  return line_chart_svg(chart);
}

void print_table(const std::vector<ModelFlow>& flows) {
  std::string head = fmt::format("{:>8}", "distance");
  size_t longest = 0;
  for (const ModelFlow& model : flows) {
    head += fmt::format("  {:>10}", model.label());
    longest = std::max(longest, shown_distances(model));
  }
  fmt::print("{}\n", head);
  for (size_t i = 0; i < longest; ++i) {
    fmt::print("{:>8}", i);
    for (const ModelFlow& model : flows)
      fmt::print("  {:>{}}",
                 i < shown_distances(model) ? fmt::format("{:.3g}", model.flow.norms[i]) : "",
                 std::max<size_t>(10, model.label().size()));
    fmt::print("\n");
  }
}

constexpr std::string_view plot_suffix = ".svg";

void run_gradients(const GradientsOptions& options) {
  if (!options.out.empty() && !has_suffix(options.out, plot_suffix))
    fail("--out {}: the plot is an {} file; name it so", in_quotes(options.out), plot_suffix);
  const std::vector<ModelFlow> flows = measure(options);
  if (!options.out.empty()) write_file(options.out, chart_of(flows));
  if (!options.json) {
    print_table(flows);
    return;
  }
  nlohmann::json models = nlohmann::json::array();
  for (const ModelFlow& model : flows)
    models.push_back({{"model", model.name},
                      {"trained", model.trained},
                      {"norms", model.flow.norms},
                      {"states", model.flow.states}});
  fmt::print("{}\n", nlohmann::json{{"models", models}}.dump());
}

}  // namespace

void add_gradients_command(CLI::App& app) {
  auto options = std::make_shared<GradientsOptions>();
  auto* command = app.add_subcommand(
      "gradients", "How much of the loss reaches each state of the encoder, by distance");
  command->add_option("models", options->models, "model folders")->required();
  command->add_option("--data", options->data, "TSV file of pairs, or a folder with test.tsv")
      ->required();
  command
      ->add_option("--examples", options->examples,
                   "number of sources to read, from the start of the file")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  add_output_file(*command, "--out", options->out, "plot to write, an .svg file");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      "Measures the gradient of a pair's loss with respect to each hidden state of the\n"
      "encoder's forward direction. Prints the geometric mean of its norm over the pairs, by the\n"
      "number of tokens after the state, before training and after it. Without attention the\n"
      "loss reaches a state only through the recurrence. Then the gradient vanishes with\n"
      "distance.\n"
      "JSON: models: [{model, trained, norms, states (number of states per norm)}], from\n"
      "distance 0.\n"
      "Example:\n"
      "  attend gradients runs/none-1 runs/bahdanau-1 --data data --out gradients.svg");
  command->callback([options] { run_gradients(*options); });
}

}  // namespace attend
