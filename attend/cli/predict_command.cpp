#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/data/line_reader.h"

namespace attend {
namespace {

struct PredictOptions : DecodeOptions {
  Sampling sampling;
  bool prefixes = false;
  bool json = false;
  bool details = false;
};

nlohmann::json as_json(const PredictOptions& options, const Model& model, const std::string& source,
                       const Answer& answer) {
  nlohmann::json predictions = nlohmann::json::array();
  for (const Candidate& candidate : answer.candidates) {
    predictions.push_back({{"target", candidate.text},
                           {"score", candidate.score},
                           {"log_probability", candidate.log_probability},
                           {"complete", candidate.complete}});
    if (!options.details) continue;
    nlohmann::json& prediction = predictions.back();
    prediction["symbols"] = candidate.tokens;
    prediction["log_probabilities"] = candidate.log_probabilities;
    if (model.attends()) prediction["weights"] = candidate.weights;
  }
  nlohmann::json result = {
      {"source", source}, {"predictions", predictions}, {"cut", answer.truncated}};
  if (options.details) result["source_symbols"] = answer.source;
  return result;
}

void print_answer(const PredictOptions& options, const Model& model, const std::string& source,
                  const Answer& answer) {
  if (options.json) {
    fmt::print("{}\n", as_json(options, model, source, answer).dump());
  } else if (options.search.nbest == 1) {
    fmt::print("{}\n", answer.candidates.empty() ? "" : answer.best().text);
  } else if (answer.candidates.empty()) {
    fmt::print("{}\t\t\n", source);
  } else {
    for (const Candidate& candidate : answer.candidates)
      fmt::print("{}\t{}\t{:.4f}\n", source, candidate.text, candidate.score);
  }
}

// What is read of the lines: sources, and with --prefixes what stands behind a TAB.
struct Questions {
  std::vector<std::string> sources, prefixes;
};

Questions read_questions(const PredictOptions& options, std::vector<std::string> lines) {
  Questions questions;
  if (options.prefixes)
    for (std::string& line : lines) {
      const size_t tab = line.find('\t');
      questions.prefixes.push_back(tab == std::string::npos ? "" : line.substr(tab + 1));
      line.resize(std::min(tab, line.size()));
    }
  questions.sources = std::move(lines);
  return questions;
}

void answer_lines(const PredictOptions& options, const Model& model, std::vector<std::string> lines,
                  int64_t first) {
  const Questions questions = read_questions(options, std::move(lines));
  SearchOptions search = options.search;
  if (search.sampling) search.sampling->first = static_cast<uint64_t>(first - 1);
  try {
    model.answer_each(
        questions.sources, search, questions.prefixes, [&](size_t i, const Answer& answer) {
          if (answer.truncated)
            fmt::print(stderr, "attend: standard input, line {}: cut to the {} {} tokens\n",
                       first + static_cast<int64_t>(i), model.continues() ? "last" : "first",
                       model.maximum_source_length());
          print_answer(options, model, questions.sources[i], answer);
        });
  } catch (const SourceError& error) {
    fail("standard input, line {}: {}", first + static_cast<int64_t>(error.index()),
         error.reason());
  }
  if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
}

void run_predict(const PredictOptions& options) {
  const SearchOptions& search = options.search;
  if (!search.sampling && search.nbest > search.beam)
    fail("--nbest {}: a beam of {} has no more answers; raise --beam", search.nbest, search.beam);
  if (options.details && !options.json) fail("--details are printed with --json alone; add it");
  search.check();
  const Model model = Model::ensemble(options.models, options.model);
  LineReader reader(STDIN_FILENO, "standard input");
  std::vector<std::string> lines;
  while (reader.read(lines)) {
    const int64_t first = reader.lines_read() - static_cast<int64_t>(lines.size()) + 1;
    answer_lines(options, model, std::move(lines), first);
  }
}

// Any of them draws the answers.
void add_sampling_options(CLI::App& command, PredictOptions& options) {
  Sampling& sampling = options.sampling;
  const std::vector<CLI::Option*> all = {
      command.add_option("--samples", options.search.nbest, "answers drawn a line")
          ->check(CLI::Range(1, 1000)),
      command
          .add_option("--temperature", sampling.temperature,
                      "draw answers; below 1 the probable ones more often")
          ->check(CLI::Range(1e-3, 1e3)),
      command.add_option("--top-k", sampling.top_k, "draw from the most probable k tokens")
          ->check(CLI::Range(1, 1000000000)),
      command
          .add_option("--top-p", sampling.top_p,
                      "draw from the fewest tokens that have this probability")
          ->check(CLI::Range(1e-6, 1.0)),
      command.add_option("--seed", sampling.seed, "of what is drawn")->capture_default_str()};
  for (CLI::Option* option : all)
    option->excludes("--beam")->excludes("--nbest")->each(
        [&options](const std::string&) { options.search.sampling = Sampling(); });
}

}  // namespace

void add_predict_command(CLI::App& app) {
  auto options = std::make_shared<PredictOptions>();
  auto* command =
      app.add_subcommand("predict", "Answer the lines of standard input, in their order");
  add_decode_options(*command, *options);
  command->add_option("--nbest", options->search.nbest, "answers a line, at most --beam")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_sampling_options(*command, *options);
  command->add_flag("--prefixes", options->prefixes,
                    "lines are a source, a TAB and what the answer begins with");
  command->add_flag("--json", options->json, "one JSON object a line");
  command->add_flag("--details", options->details,
                    "with --json: tokens, their probabilities and what they attended to");
  command->footer(
      "Examples:\n"
      "  echo attention | attend predict model\n"
      "  attend predict model --beam 5 --nbest 3 < words.txt\n"
      "  attend predict run-1 run-2 run-3 --beam 5 < words.txt\n"
      "  attend predict model --samples 3 --top-p 0.9 --seed 7 < words.txt\n"
      "Output: one answer a line; with --nbest or --samples of N, lines of source TAB answer TAB\n"
      "score; with --json,\n"
      "  {\"source\", \"predictions\": [{\"target\", \"score\", \"log_probability\", "
      "\"complete\"}], \"cut\"};\n"
      "with --details also source_symbols, and of each prediction symbols, log_probabilities "
      "(last\n"
      "that of the end, which a label has not) and weights [symbols, source_symbols].\n"
      "Answers are drawn where any of --samples, --temperature, --top-k, --top-p and --seed is "
      "there;\n"
      "what a line gets depends on the seed and its number alone.\n"
      "On the CPU the output for a line is the same, to the last digit, whatever the other lines,\n"
      "their order and --threads; on another kind of processor last digits may differ.");
  command->callback([options] {
    SearchOptions& search = options->search;
    if (search.sampling) search.sampling = options->sampling;
    search.with_weights = options->details;
    run_predict(*options);
  });
}

}  // namespace attend
