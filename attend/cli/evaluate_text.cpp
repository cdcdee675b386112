#include "attend/cli/evaluate_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/metric_options.h"
#include "attend/cli/progress.h"
#include "attend/data/tables.h"
#include "attend/inference/answer_json.h"
#include "attend/inference/evaluation.h"
#include "attend/metrics/metric.h"

namespace attend {
namespace {

using nlohmann::json;

json measure_masked(const Model& model, const std::string& path, int64_t* bad) {
  const std::vector<Example> examples = names_text(path)
                                            ? lines_of(read_text(path, print_remark, bad))
                                            : read_pairs({path}, print_remark, bad);
  if (examples.empty()) fail("{}: holds no line with a token", path);
  json figures = likelihood_json(likelihood(model, examples));
  figures["examples"] = examples.size();
  return figures;
}

}  // namespace

void evaluate_text(const Model& model, const std::string& data, bool as_json, int64_t* bad) {
  const bool masked = model.answer_kind().fills();
  const std::string path = std::filesystem::is_directory(data) ? data + "/test.txt" : data;
  const json figures =
      masked ? measure_masked(model, path, bad)
             : likelihood_json(likelihood_of_text(model, read_text(path, print_remark, bad)));
  if (figures["tokens"] == figures["unknown_tokens"])
    fail(
        "{}: the model's vocabulary lacks all of its {} tokens, so loss is not computed; give data "
        "of the model's kind",
        path, figures["tokens"].get<int64_t>());
  if (as_json) {
    fmt::print("{}\n", figures.dump());
    return;
  }
  for (const Metric& metric : metric_table())
    if (figures.contains(metric.key))
      fmt::print("{}", metric.report_text(figures[metric.key], masked ? "masked token" : "token"));
  if (masked) {
    fmt::print("masked               {:6} tokens, the same in every run\n",
               figures["asked_tokens"].get<int64_t>());
    if (const auto unknown = figures["unknown_tokens"].get<int64_t>(); unknown > 0)
      fmt::print("unknown tokens       {:6}; they are not masked\n", unknown);
  } else {
    fmt::print("{}", unknown_line(figures["unknown_tokens"], figures["known_loss"]));
    fmt::print("loss in windows      {:6.4f} nats per token\n",
               figures["window_loss"].get<double>());
  }
  fmt::print("tokens               {:6}\n", figures["tokens"].get<int64_t>());
}

}  // namespace attend
