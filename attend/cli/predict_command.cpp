#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/inference/predictor.h"

namespace attend {
namespace {

// Longer input without a line end is no text.
constexpr size_t longest_line = size_t{1} << 24;

struct PredictOptions : DecodeOptions {
  Sampling sampling;
  bool prefixes = false;
  bool json = false;
  bool details = false;
};

// Lines of standard input as they come: one read gives all the lines that are there, so that a
// pipe is decoded in batches and a person is answered at once.
class LineReader {
 public:
  // false at the end of input.
  bool read(std::vector<std::string>& lines) {
    lines.clear();
    char buffer[1 << 16];
    while (lines.empty() && !ended_) {
      const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("standard input cannot be read: {}", std::strerror(errno));
      ended_ = count == 0;
      pending_.append(buffer, static_cast<size_t>(count));
      split(lines);
    }
    return !lines.empty();
  }

  int64_t lines_read() const { return lines_read_; }

 private:
  void split(std::vector<std::string>& lines) {
    size_t begin = 0;
    for (size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1)
      add(lines, pending_.substr(begin, end - begin));
    pending_.erase(0, begin);
    if (pending_.size() > longest_line)
      fail("standard input, line {}: over {} bytes; break it into lines", lines_read_ + 1,
           longest_line);
    if (ended_ && !pending_.empty()) add(lines, std::exchange(pending_, ""));
  }

  void add(std::vector<std::string>& lines, std::string line) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    ++lines_read_;
  }

  std::string pending_;
  bool ended_ = false;
  int64_t lines_read_ = 0;
};

std::vector<std::vector<float>> rows_of(const at::Tensor& weights, size_t columns) {
  std::vector<std::vector<float>> rows(static_cast<size_t>(weights.size(0)));
  const auto weight = weights.accessor<float, 2>();
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].reserve(columns);
    for (size_t j = 0; j < columns; ++j)
      rows[i].push_back(weight[static_cast<int64_t>(i)][static_cast<int64_t>(j)]);
  }
  return rows;
}

nlohmann::json as_json(const PredictOptions& options, const PairModel& model,
                       const std::string& source, const Prediction& prediction) {
  nlohmann::json answers = nlohmann::json::array();
  for (const Hypothesis& hypothesis : prediction.hypotheses) {
    answers.push_back({{"target", model.target_text(hypothesis.tokens)},
                       {"score", hypothesis.score},
                       {"log_probability", hypothesis.log_probability},
                       {"complete", hypothesis.complete}});
    if (!options.details) continue;
    nlohmann::json& answer = answers.back();
    answer["symbols"] = model.target_vocabulary.decode(hypothesis.tokens);
    answer["log_probabilities"] = hypothesis.log_probabilities;
    if (!model.network->attends()) continue;
    answer["weights"] = nlohmann::json::array();  // of an answer without tokens
    if (hypothesis.weights.defined())
      answer["weights"] = rows_of(hypothesis.weights, prediction.source.size());
  }
  nlohmann::json result = {{"source", source}, {"predictions", answers}, {"cut", prediction.cut}};
  if (options.details) result["source_symbols"] = prediction.source;
  return result;
}

void print_answer(const PredictOptions& options, const PairModel& model, const std::string& source,
                  const Prediction& prediction) {
  if (options.json) {
    fmt::print("{}\n", as_json(options, model, source, prediction).dump());
  } else if (options.decoding.search.nbest == 1) {
    fmt::print("{}\n", prediction.hypotheses.empty()
                           ? ""
                           : model.target_text(prediction.hypotheses[0].tokens));
  } else if (prediction.hypotheses.empty()) {
    fmt::print("{}\t\t\n", source);
  } else {
    for (const Hypothesis& hypothesis : prediction.hypotheses)
      fmt::print("{}\t{}\t{:.4f}\n", source, model.target_text(hypothesis.tokens),
                 hypothesis.score);
  }
}

// What is read of the lines: sources, and with --prefixes what stands behind a TAB.
struct Questions {
  std::vector<std::string> sources, prefixes;
};

Questions read_questions(const PredictOptions& options, const PairModel& model,
                         std::vector<std::string> lines, int64_t first) {
  Questions questions;
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      if (options.prefixes) {
        const size_t tab = lines[i].find('\t');
        questions.prefixes.push_back(tab == std::string::npos ? "" : lines[i].substr(tab + 1));
        lines[i].resize(std::min(tab, lines[i].size()));
        model.codecs.target.split(questions.prefixes.back());
      }
      model.source_ids(model.source_tokens(lines[i]));
    } catch (const Error& error) {
      fail("standard input, line {}: {}", first + static_cast<int64_t>(i), error.what());
    }
  }
  questions.sources = std::move(lines);
  return questions;
}

void run_predict(const PredictOptions& options) {
  const SearchOptions& search = options.decoding.search;
  if (!search.sampling && search.nbest > search.beam)
    fail("--nbest {}: a beam of {} has no more answers; raise --beam", search.nbest, search.beam);
  if (options.details && !options.json) fail("--details are printed with --json alone; add it");
  search.check();
  const PairModel model = load_pair_model(options.models[0]);
  Predictor predictor(model, model.network, options.threads,
                      load_members(model, {options.models.begin() + 1, options.models.end()}));
  predictor.place(parse_devices(options.device, options.place));
  LineReader reader;
  std::vector<std::string> lines;
  while (reader.read(lines)) {
    const int64_t first = reader.lines_read() - static_cast<int64_t>(lines.size()) + 1;
    const Questions questions = read_questions(options, model, std::move(lines), first);
    const std::vector<Prediction> predictions =
        predictor.predict(questions.sources, options.decoding, {}, questions.prefixes);
    for (size_t i = 0; i < predictions.size(); ++i) {
      if (predictions[i].cut)
        fmt::print(stderr, "attend: standard input, line {}: cut to the {} {} tokens\n",
                   first + static_cast<int64_t>(i),
                   model.config.is_language_model() ? "last" : "first",
                   model.config.maximum_source_length());
      print_answer(options, model, questions.sources[i], predictions[i]);
    }
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
  }
}

// Any of them draws the answers.
void add_sampling_options(CLI::App& command, PredictOptions& options) {
  Sampling& sampling = options.sampling;
  const std::vector<CLI::Option*> all = {
      command.add_option("--samples", options.decoding.search.nbest, "answers drawn a line")
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
        [&options](const std::string&) { options.decoding.search.sampling = Sampling(); });
}

}  // namespace

void add_predict_command(CLI::App& app) {
  auto options = std::make_shared<PredictOptions>();
  auto* command =
      app.add_subcommand("predict", "Answer the lines of standard input, in their order");
  add_decode_options(*command, *options);
  command->add_option("--nbest", options->decoding.search.nbest, "answers a line, at most --beam")
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
      "with --details also source_tokens, and of each prediction tokens, log_probabilities (the\n"
      "end's last, where complete) and weights [tokens, source tokens].\n"
      "Answers are drawn where any of --samples, --temperature, --top-k, --top-p and --seed is "
      "there;\n"
      "what a line gets depends on the seed and its number alone.\n"
      "On the CPU the output for a line is the same, to the last digit, whatever the other lines,\n"
      "their order and --threads; on another kind of processor last digits may differ.");
  command->callback([options] {
    SearchOptions& search = options->decoding.search;
    if (search.sampling) search.sampling = options->sampling;
    search.with_weights = options->details;
    run_predict(*options);
  });
}

}  // namespace attend
