// Measures fused kernels against the machine's limits and against LibTorch's composed path, all in
// one run: `./dev bench attention --help`.

#include "bench/attention_bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <hwy/targets.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/kernels/cpu.h"
#include "attend/pictures/chart.h"
#include "bench/measure.h"
#include "bench/operator.h"

namespace attend::bench {

bool Figure::met() const {
  if (!value) return false;
  return !bar || (bar->maximum ? *value <= bar->value : *value >= bar->value);
}

std::vector<Target> measured_targets() {
  std::vector<Target> targets;
  for (const int64_t bit : hwy::SupportedAndGeneratedTargets()) {
    const std::string name = hwy::TargetName(bit);
    if (!targets.empty() && name != "AVX2") continue;
    targets.push_back({name.starts_with("AVX3") ? "AVX-512" : name, bit});
  }
  return targets;
}

OnTarget::OnTarget(const Target& target) { hwy::SetSupportedTargetsForTest(target.bit); }

OnTarget::~OnTarget() { hwy::SetSupportedTargetsForTest(0); }

namespace {

struct Options {
  std::vector<std::string> only;
  bool quick = false, json = false, list = false;
  std::string picture;
};

std::vector<Case> chosen_cases(const Options& options) {
  std::vector<Case> cases;
  add_additive_cases(cases);
  add_peak_cases(cases);
  add_variant_cases(cases);
  add_operator_cases(cases);
  add_bf16_cases(cases);
  add_edge_cases(cases);
  add_decode_cases(cases);
  std::erase_if(cases, [&](const Case& c) {
    const auto named = [&](const std::string& part) {
      return c.name.find(part) != std::string::npos;
    };
    return (options.quick && !c.quick) ||
           (!options.only.empty() && std::none_of(options.only.begin(), options.only.end(), named));
  });
  return cases;
}

std::string bar_text(const Figure& figure) {
  if (!figure.bar) return "";
  return fmt::format("{} {:.3g}", figure.bar->maximum ? "<=" : ">=", figure.bar->value);
}

void print_line(const Figure& figure, std::string& previous) {
  if (figure.name != previous) fmt::print("\n{}\n", figure.name);
  previous = figure.name;
  if (figure.value) {
    fmt::print("  {:52} {:>9.4g}  {:>8}  {}\n", figure.metric, *figure.value, bar_text(figure),
               !figure.bar    ? ""
               : figure.met() ? "met"
                              : "MISSED");
  } else {
    fmt::print("  not available: {}\n", figure.metric);
  }
  std::fflush(stdout);
}

nlohmann::ordered_json to_json(const Figure& figure) {
  nlohmann::ordered_json json = {{"case", figure.name},
                                 {"metric", figure.metric},
                                 {"value", nullptr},
                                 {"bar", nullptr},
                                 {"met", figure.met()}};
  if (figure.value) json["value"] = *figure.value;
  if (figure.bar) json["bar"] = figure.bar->value;
  return json;
}

void add_lines(Chart& chart, const std::map<std::string, std::vector<ChartSample>>& lines,
               std::string_view pass) {
  chart.series.reserve(chart.series.size() + lines.size());
  for (const auto& [name, samples] : lines) {
    ChartSeries series{fmt::format("{}: {}", pass, name), {}};
    series.points.reserve(samples.size());
    for (const ChartSample& sample : samples) {
      series.points.push_back({std::log2(static_cast<double>(sample.length)), sample.fraction});
    }
    chart.series.push_back(std::move(series));
  }
}

std::string picture(const Bench& bench, const std::string& machine) {
  Chart chart{.title = "Multiply-adds of attention, one thread, fp32: " + machine,
              .x_label = "queries and keys",
              .y_label = "fraction of the core's multiply-add peak",
              .series = {},
              .y_as_percent = true,
              .x_powers_of_two = true,
              .width = 900,
              .height = 600};
  // With six families, each backward line has the colour of its forward line, and another dash.
  add_lines(chart, bench.forward_samples, "forward");
  add_lines(chart, bench.backward_samples, "backward");
  return line_chart_svg(chart);
}

void run_case(const Case& chosen, Bench& bench) {
  bench.name = chosen.name;
  try {
    chosen.run(bench);
  } catch (const std::exception& error) {
    bench.report({chosen.name, error.what(), {}, {}});
  }
}

std::vector<Figure> run_cases(const Options& options, Bench& bench) {
  std::vector<Figure> figures;
  std::string previous;
  bench.seconds = options.quick ? 0.1 : 0.5;
  bench.report = [&](const Figure& figure) {
    figures.push_back(figure);
    if (!options.json) print_line(figure, previous);
  };
  for (const Case& chosen : chosen_cases(options)) run_case(chosen, bench);
  return figures;
}

void report_all(const std::vector<Figure>& figures, bool as_json) {
  if (as_json) {
    auto array = nlohmann::ordered_json::array();
    for (const Figure& figure : figures) array.push_back(to_json(figure));
    fmt::print("{}\n", array.dump(1));
    return;
  }
  const auto count = [&](auto condition) {
    return std::count_if(figures.begin(), figures.end(), condition);
  };
  fmt::print("\n{} bars met, {} missed, {} cases not available\n",
             count([](const Figure& f) { return f.bar && f.met(); }),
             count([](const Figure& f) { return f.bar && !f.met(); }),
             count([](const Figure& f) { return !f.value; }));
}

void run(const Options& options, const std::string& slow_products) {
  if (options.list) {
    for (const Case& each : chosen_cases(options)) fmt::print("{}\n", each.name);
    return;
  }
  set_libtorch_threads(1);
  const std::string machine = probe_cpu().model;
  const std::time_t time = std::time(nullptr);
  if (!options.json) fmt::print("{}, {:%Y-%m-%d}\n", machine, fmt::gmtime(time));
  Bench bench;
  bench.slow_products = slow_products;
  const std::vector<Figure> figures = run_cases(options, bench);
  report_all(figures, options.json);
  if (bench.forward_samples.empty()) return;
  write_file(options.picture, picture(bench, machine));
  fmt::print(stderr, "wrote {}\n", options.picture);
}

}  // namespace
}  // namespace attend::bench

int main(int argc, char** argv) {
  const std::string slow_products = attend::bench::prepare_blas(argv);
  CLI::App app{
      "Attention kernels against the multiply-add peak of the core, the memory bandwidth and "
      "LibTorch's composed path, each measured in the same run. Figures are medians; both "
      "sides take turns. One thread is timed by its processor time, several by the clock."};
  attend::bench::Options options;
  options.picture =
      std::filesystem::absolute(argv[0]).parent_path().append("attention_bench.svg").string();
  app.add_option("--only,cases", options.only, "only cases with one of these words in their names");
  app.add_flag("--quick", options.quick, "a subset that takes a minute");
  app.add_flag("--list", options.list, "print the names of the cases and stop");
  app.add_flag("--json", options.json,
               "one array of {case, metric, value, bar, met}; value null: the case could not run, "
               "and metric says why; bar null: there is none");
  app.add_option("--svg", options.picture, "file of the picture: fraction of peak by length")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  attend::bench::run(options, slow_products);
}
