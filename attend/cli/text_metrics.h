#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/data/text_metrics.h"

namespace attend {

// --tokenise, --smooth, --smooth-value and --lowercase.
void add_text_metric_options(CLI::App& command, BleuOptions& options);

// The key of a metric in JSON: of token_error, say, token_error_rate.
std::string metric_key(const std::string& name);

// A metric for a person, a fraction or one of the above: BLEU and chrF in sacreBLEU's form, of
// labels a line each.
std::string metric_lines(const std::string& name, const nlohmann::json& metric);

// A line with the number of unknown tokens, and loss (nats a token) and perplexity without them;
// empty where there are none.
std::string unknown_line(int64_t unknown, double known_loss);

}  // namespace attend
