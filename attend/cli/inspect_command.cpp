#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/metrics/metric.h"
#include "attend/runs/description.h"
#include "attend/runs/history.h"

namespace attend {
namespace {

using nlohmann::json;

// The file may come from another program.
std::string metric_of(const json& record) {
  const bool named = record.contains("metric") && record["metric"].is_string();
  const Metric* metric = find_metric(named ? record["metric"].get<std::string>() : "token_error");
  const double figure = number(record, "valid_metric");
  return metric ? metric->shown(figure) : fmt::format("{:.4f}", figure);
}

void print(const json& model) {
  fmt::print("{}: {} source and {} target tokens\n\n", model["model"].get<std::string>(),
             model["source_tokens"].get<int64_t>(), model["target_tokens"].get<int64_t>());
  for (const auto& [key, value] : model["config"].items())
    fmt::print("  {:32} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  fmt::print("\n  {:44} {:>16} {:>10}\n", "parameter", "shape", "count");
  for (const json& parameter : model["parameters"])
    fmt::print("  {:44} {:>16} {:>10}\n", parameter["name"].get<std::string>(),
               parameter["shape"].dump(), parameter["count"].get<int64_t>());
  fmt::print("  {:44} {:>16} {:>10} ({:.1f} MB)\n", "all", "",
             model["parameter_count"].get<int64_t>(),
             static_cast<double>(model["weight_bytes"].get<int64_t>()) / 1e6);
  if (model["history"].empty()) return;
  fmt::print("\n  {:>6} {:>8} {:>11} {:>11} {:>13} {:>9}\n", "epoch", "step", "train loss",
             "valid loss", "valid metric", "seconds");
  for (const json& record : model["history"])
    fmt::print("  {:>6.0f} {:>8.0f} {:>11.4f} {:>11.4f} {:>13} {:>9.0f}{}\n",
               number(record, "epoch"), number(record, "step"), number(record, "train_loss"),
               number(record, "valid_loss"), metric_of(record), number(record, "seconds"),
               record.contains("best") && record["best"] == true ? " best" : "");
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  auto* command = app.add_subcommand(
      "inspect", "Show a model's configuration, parameters and training history");
  command->add_option("model", *folder, "model folder")->required();
  command->add_flag("--json", *as_json, "print one JSON object");
  command->footer("Example:\n  attend inspect model");
  command->callback([folder, as_json] {
    const json model = describe_model(*folder);
    if (*as_json)
      fmt::print("{}\n", model.dump());
    else
      print(model);
  });
}

}  // namespace attend
