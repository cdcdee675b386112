#include "attend/cli/text_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace attend {
namespace {

using nlohmann::json;

std::string bleu_line(const json& metric) {
  const auto precisions = metric["precisions"].get<std::vector<double>>();
  const auto hypothesis = metric["hypothesis_length"].get<int64_t>();
  const auto reference = metric["reference_length"].get<int64_t>();
  const double ratio =
      reference == 0 ? 0 : static_cast<double>(hypothesis) / static_cast<double>(reference);
  return fmt::format("{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
                     fmt::join(precisions, "/"), metric["brevity_penalty"].get<double>(), ratio,
                     hypothesis, reference);
}

std::string label_line(const std::string& name, const json& score) {
  return fmt::format("{}: F1 {:.2f} %, precision {:.2f} %, recall {:.2f} %\n", name,
                     100 * score["f1"].get<double>(), 100 * score["precision"].get<double>(),
                     100 * score["recall"].get<double>());
}

}  // namespace

void add_text_metric_options(CLI::App& command, BleuOptions& options) {
  command
      .add_option("--tokenise", options.tokenise,
                  "BLEU's tokens: 13a, intl, zh, char, or none for texts that are tokenised")
      ->check(CLI::IsMember(bleu_tokenisers()))
      ->capture_default_str();
  command.add_option("--smooth", options.smooth, "of BLEU's orders without a match")
      ->check(CLI::IsMember({"exp", "floor", "add-k", "none"}))
      ->capture_default_str();
  command.add_option("--smooth-value", options.smooth_value, "of floor (0.1) and add-k (1)");
  command.add_flag("--lowercase", options.lowercase, "BLEU and chrF of lower-cased texts");
}

std::string metric_key(const std::string& name) {
  return name.ends_with("_error") ? name + "_rate" : name;
}

std::string metric_lines(const std::string& name, const json& metric) {
  if (metric.is_number()) {
    std::string words = metric_key(name);
    std::replace(words.begin(), words.end(), '_', ' ');
    return fmt::format("{:<20} {:6.2f} %\n", words, 100 * metric.get<double>());
  }
  if (name == "f1") {
    std::string lines = label_line("mean of the labels", metric);
    const json labels = metric.value("labels", json::object());
    for (const auto& [label, score] : labels.items())
      lines += label_line(fmt::format("label {}", label), score);
    return lines;
  }
  return fmt::format("{}|{} = {:.2f}{}\n", metric["name"].get<std::string>(),
                     metric["signature"].get<std::string>(), metric["score"].get<double>(),
                     name == "bleu" ? " " + bleu_line(metric) : "");
}

std::string unknown_line(int64_t unknown, double known_loss) {
  if (unknown == 0) return "";
  return fmt::format("unknown symbols      {:6}; without them {:.4f} nats, perplexity {:.4f}\n",
                     unknown, known_loss, std::exp(known_loss));
}

}  // namespace attend
