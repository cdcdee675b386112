#include "attend/cli/evaluate_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/text_metrics.h"
#include "attend/data/tables.h"
#include "attend/inference/evaluation.h"

namespace attend {
namespace {

using nlohmann::json;

json measure_text(const Model& model, const std::string& path) {
  const auto [likelihood, window_loss] = likelihood_of_text(model, read_text(path));
  return {{"loss", likelihood.loss()},
          {"perplexity", likelihood.perplexity()},
          {"bits_per_byte", likelihood.bits_per_byte()},
          {"window_loss", window_loss},
          {"symbols", likelihood.tokens},
          {"unknown_symbols", likelihood.unknown},
          {"known_loss", likelihood.known().loss()},
          {"bytes", likelihood.bytes}};
}

json measure_masked(const Model& model, const std::string& path) {
  const std::vector<Example> examples =
      names_text(path) ? lines_of(read_text(path)) : read_pairs({path});
  const Likelihood hidden = likelihood(model, examples);
  return {{"loss", hidden.loss()},
          {"perplexity", hidden.perplexity()},
          {"symbols", hidden.tokens},
          {"examples", examples.size()}};
}

}  // namespace

void evaluate_text(const Model& model, const std::string& data, bool as_json) {
  const bool masked = model.fills();
  const std::string path = std::filesystem::is_directory(data) ? data + "/test.txt" : data;
  const json figures = masked ? measure_masked(model, path) : measure_text(model, path);
  if (as_json) {
    fmt::print("{}\n", figures.dump());
    return;
  }
  fmt::print("loss                 {:6.4f} nats a token{}\n", figures["loss"].get<double>(),
             masked ? " that is asked for" : "");
  fmt::print("perplexity           {:6.4f}\n", figures["perplexity"].get<double>());
  if (!masked) {
    fmt::print("bits per byte        {:6.4f}\n", figures["bits_per_byte"].get<double>());
    fmt::print("{}", unknown_line(figures["unknown_symbols"], figures["known_loss"]));
    fmt::print("loss in windows      {:6.4f} nats a token\n", figures["window_loss"].get<double>());
  }
  fmt::print("symbols              {:6}\n", figures["symbols"].get<int64_t>());
}

}  // namespace attend
