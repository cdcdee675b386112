#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/predictor.h"
#include "attend/cli/progress.h"

namespace attend {
namespace {

struct EvaluateOptions : DecodeOptions {
  std::string data;
  bool json = false;
};

struct Figures {
  Evaluation evaluation;
  double loss = 0;
  double seconds = 0;
};

Figures measure(const EvaluateOptions& options, const PairModel& model) {
  const bool folder = std::filesystem::is_directory(options.data);
  const auto examples = read_pairs(folder ? options.data + "/test.tsv" : options.data);
  Predictor predictor(model, model.network, options.threads);
  Figures figures;
  const auto start = std::chrono::steady_clock::now();
  {
    CountPrinter printer("decoded");
    figures.evaluation = evaluate(predictor, model, examples, options.search,
                                  [&](int64_t done, int64_t total) { printer.show(done, total); });
  }
  figures.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  figures.loss = predictor.loss(model.encode(examples));
  return figures;
}

nlohmann::json as_json(const EvaluateOptions& options, const Figures& figures) {
  nlohmann::json lengths = nlohmann::json::array();
  for (const auto& [length, errors] : figures.evaluation.by_length)
    lengths.push_back({{"source_length", length},
                       {"examples", errors.examples},
                       {"token_error_rate", errors.token_error_rate()},
                       {"sequence_error_rate", errors.sequence_error_rate()}});
  return {{"token_error_rate", figures.evaluation.errors.token_error_rate()},
          {"sequence_error_rate", figures.evaluation.errors.sequence_error_rate()},
          {"loss", figures.loss},
          {"perplexity", std::exp(figures.loss)},
          {"examples", figures.evaluation.errors.examples},
          {"beam", options.search.beam},
          {"decode_seconds", figures.seconds},
          {"by_length", lengths}};
}

void run_evaluate(const EvaluateOptions& options) {
  const PairModel model = load_pair_model(options.model);
  const Figures figures = measure(options, model);
  if (options.json) {
    fmt::print("{}\n", as_json(options, figures).dump());
    return;
  }
  fmt::print("token error rate     {:6.2f} %\n",
             100 * figures.evaluation.errors.token_error_rate());
  fmt::print("sequence error rate  {:6.2f} %\n",
             100 * figures.evaluation.errors.sequence_error_rate());
  fmt::print("loss                 {:6.4f} nats a symbol\n", figures.loss);
  fmt::print("perplexity           {:6.4f}\n", std::exp(figures.loss));
  fmt::print("examples             {:6}\n", figures.evaluation.errors.examples);
  fmt::print("decoded in           {:6.2f} s, beam {}\n", figures.seconds, options.search.beam);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  auto* command = app.add_subcommand("evaluate", "Measure a model's errors on pairs");
  add_decode_options(*command, *options);
  command->add_option("--data", options->data, "TSV file of pairs, or a folder with test.tsv")
      ->required();
  command->add_flag("--json", options->json, "print one JSON object; rates are fractions");
  command->footer(
      "Example:\n"
      "  attend evaluate model --data data/test.tsv --beam 5\n"
      "The token error rate is edits a reference symbol (PER for phonemes), the sequence error\n"
      "rate the share of answers that match no reference (WER for words); of several references "
      "the\n"
      "nearest counts. JSON keys: token_error_rate, sequence_error_rate, loss, perplexity, "
      "examples,\n"
      "beam, decode_seconds, by_length: [{source_length, examples, token_error_rate,\n"
      "sequence_error_rate}].");
  command->callback([options] { run_evaluate(*options); });
}

}  // namespace attend
