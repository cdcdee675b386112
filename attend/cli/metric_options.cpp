#include "attend/cli/metric_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace attend {

CLI::Option* add_metric_option(CLI::App& command, std::vector<std::string>& names,
                               const std::string& help,
                               const std::function<bool(const Metric&)>& takes) {
  return command.add_option("--metric", names, help)
      ->delimiter(',')
      ->type_name("{" + fmt::format("{}", fmt::join(metric_names(takes), ",")) + "}")
      ->check([takes](const std::string& name) -> std::string {
        const Metric* row = find_metric(name);
        if (row != nullptr && takes(*row)) return "";
        return fmt::format("{} is not one of {}", name, fmt::join(metric_names(takes), ", "));
      });
}

void add_text_options(CLI::App& command, BleuOptions& options) {
  command
      .add_option("--tokenise", options.tokenise,
                  "BLEU's tokeniser: 13a, intl, zh, char, or none for tokenised texts")
      ->check(CLI::IsMember(bleu_tokenisers()))
      ->capture_default_str();
  command
      .add_option("--smooth", options.smooth, "smoothing of BLEU for n-gram orders without a match")
      ->check(CLI::IsMember(bleu_smoothings()))
      ->capture_default_str();
  command.add_option("--smooth-value", options.smooth_value,
                     "value for the smoothings floor (default 0.1) and add-k (default 1)");
  command.add_flag("--lowercase", options.lowercase, "compute BLEU and chrF on lower-cased texts");
}

std::string unknown_line(int64_t unknown, double known_loss) {
  if (unknown == 0) return "";
  return fmt::format("unknown tokens       {:6}; without them {:.4f} nats, perplexity {:.4f}\n",
                     unknown, known_loss, std::exp(known_loss));
}

}  // namespace attend
