#include "attend/cli/evaluate_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/data/metrics.h"
#include "attend/data/pairs.h"
#include "attend/data/text_windows.h"

namespace attend {

void evaluate_text(const DecodeOptions& options, const PairModel& model, const std::string& data,
                   bool as_json) {
  const std::string path = std::filesystem::is_directory(data) ? data + "/test.txt" : data;
  const std::string text = read_text(path);
  const std::vector<int64_t> symbols = model.encode_text(text);
  Predictor predictor(model, model.network, options.threads,
                      load_members(model, {options.models.begin() + 1, options.models.end()}));
  const int64_t context = model.model.lm.context, half = context / 2;
  // Half of what fills the context is predicted, from the other half on.
  const double loss = predictor.loss(windows_in_order(symbols, context - half, half));
  const double window_loss = predictor.loss(windows_in_order(symbols, context - 1, 1));
  const auto count = static_cast<int64_t>(symbols.size());
  const Likelihood likelihood{loss * static_cast<double>(count), count,
                              static_cast<int64_t>(text.size())};
  if (as_json) {
    fmt::print("{}\n", nlohmann::json{{"loss", loss},
                                      {"perplexity", likelihood.perplexity()},
                                      {"bits_per_byte", likelihood.bits_per_byte()},
                                      {"window_loss", window_loss},
                                      {"symbols", count},
                                      {"bytes", text.size()}}
                           .dump());
    return;
  }
  fmt::print(
      "loss                 {:6.4f} nats a symbol, {} of context in front of each\n"
      "perplexity           {:6.4f}\n"
      "bits per byte        {:6.4f}\n"
      "loss in windows      {:6.4f} nats a symbol, windows of {}\n"
      "symbols              {:6}\n",
      loss, half, likelihood.perplexity(), likelihood.bits_per_byte(), window_loss, context - 1,
      count);
}

}  // namespace attend
