#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "attend/metrics/metric.h"

namespace attend {

// --metric: comma-separated names of rows for which `takes` is true.
CLI::Option* add_metric_option(CLI::App& command, std::vector<std::string>& names,
                               const std::string& help,
                               const std::function<bool(const Metric&)>& takes);

// --tokenise, --smooth, --smooth-value and --lowercase.
void add_text_options(CLI::App& command, BleuOptions& options);

// A line with the number of unknown tokens, and loss (nats per token) and perplexity without them;
// empty if there are none.
std::string unknown_line(int64_t unknown, double known_loss);

}  // namespace attend
