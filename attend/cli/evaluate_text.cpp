#include "attend/cli/evaluate_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/data/metrics.h"
#include "attend/data/text_windows.h"
#include "attend/runs/train_data.h"

namespace attend {
namespace {

using nlohmann::json;

json measure_text(const DecodeOptions& options, const PairModel& model, const std::string& path) {
  const std::string text = read_text(path);
  const std::vector<int64_t> tokens = model.encode_text(text);
  Predictor predictor(model, model.network, options.threads,
                      load_members(model, {options.models.begin() + 1, options.models.end()}));
  const int64_t context = model.config.lm.context, half = context / 2;
  // Half of what fills the context is predicted, from the other half on.
  const double loss = predictor.loss(windows_in_order(tokens, context - half, half));
  const auto count = static_cast<int64_t>(tokens.size());
  const Likelihood likelihood{loss * static_cast<double>(count), count,
                              static_cast<int64_t>(text.size())};
  return {{"loss", loss},
          {"perplexity", likelihood.perplexity()},
          {"bits_per_byte", likelihood.bits_per_byte()},
          {"window_loss", predictor.loss(windows_in_order(tokens, context - 1, 1))},
          {"symbols", count},
          {"bytes", text.size()}};
}

json measure_masked(const DecodeOptions& options, const PairModel& model, const std::string& path) {
  if (options.models.size() > 1)
    fail("{}: encoders are measured one at a time; give one model", options.models[1]);
  const std::vector<EncodedPair> pairs =
      model.encode(names_text(model.config, path) ? lines_of(read_text(path)) : read_pairs(path));
  const double loss = Predictor(model, model.network, options.threads).loss(pairs);
  Likelihood likelihood{0, 0, 1};
  for (const EncodedPair& pair : pairs) likelihood.tokens += pair.target_length();
  likelihood.nats = loss * static_cast<double>(likelihood.tokens);
  return {{"loss", loss},
          {"perplexity", likelihood.perplexity()},
          {"symbols", likelihood.tokens},
          {"examples", pairs.size()}};
}

}  // namespace

void evaluate_text(const DecodeOptions& options, const PairModel& model, const std::string& data,
                   bool as_json) {
  const bool masked = model.config.is_masked();
  const std::string path = std::filesystem::is_directory(data) ? data + "/test.txt" : data;
  const json figures =
      masked ? measure_masked(options, model, path) : measure_text(options, model, path);
  if (as_json) {
    fmt::print("{}\n", figures.dump());
    return;
  }
  fmt::print("loss                 {:6.4f} nats a token{}\n", figures["loss"].get<double>(),
             masked ? " that is asked for" : "");
  fmt::print("perplexity           {:6.4f}\n", figures["perplexity"].get<double>());
  if (!masked) {
    fmt::print("bits per byte        {:6.4f}\n", figures["bits_per_byte"].get<double>());
    fmt::print("loss in windows      {:6.4f} nats a token\n", figures["window_loss"].get<double>());
  }
  fmt::print("symbols              {:6}\n", figures["symbols"].get<int64_t>());
}

}  // namespace attend
