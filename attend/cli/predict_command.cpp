#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/predictor.h"

namespace attend {
namespace {

// Longer input without a line end is no text.
constexpr size_t longest_line = size_t{1} << 24;

struct PredictOptions : DecodeOptions {
  bool json = false;
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

nlohmann::json as_json(const PairModel& model, const std::string& source,
                       const Prediction& prediction) {
  nlohmann::json answers = nlohmann::json::array();
  for (const Hypothesis& hypothesis : prediction.hypotheses)
    answers.push_back({{"target", model.target_text(hypothesis.symbols)},
                       {"score", hypothesis.score},
                       {"log_probability", hypothesis.log_probability},
                       {"complete", hypothesis.complete}});
  return {{"source", source}, {"predictions", answers}, {"cut", prediction.cut}};
}

void print_answer(const PredictOptions& options, const PairModel& model, const std::string& source,
                  const Prediction& prediction) {
  if (options.json) {
    fmt::print("{}\n", as_json(model, source, prediction).dump());
  } else if (options.search.nbest == 1) {
    fmt::print("{}\n", prediction.hypotheses.empty()
                           ? ""
                           : model.target_text(prediction.hypotheses[0].symbols));
  } else if (prediction.hypotheses.empty()) {
    fmt::print("{}\t\t\n", source);
  } else {
    for (const Hypothesis& hypothesis : prediction.hypotheses)
      fmt::print("{}\t{}\t{:.4f}\n", source, model.target_text(hypothesis.symbols),
                 hypothesis.score);
  }
}

void check_lines(const PairModel& model, const std::vector<std::string>& lines, int64_t first) {
  if (model.text.reads_frames()) return;  // the messages name the file
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      model.codecs.source.split(lines[i]);
    } catch (const Error& error) {
      fail("standard input, line {}: {}", first + static_cast<int64_t>(i), error.what());
    }
  }
}

void run_predict(const PredictOptions& options) {
  if (options.search.nbest > options.search.beam)
    fail("--nbest {}: a beam of {} has no more answers; raise --beam", options.search.nbest,
         options.search.beam);
  const PairModel model = load_pair_model(options.model);
  Predictor predictor(model, model.network, options.threads);
  LineReader reader;
  std::vector<std::string> lines;
  while (reader.read(lines)) {
    const int64_t first = reader.lines_read() - static_cast<int64_t>(lines.size()) + 1;
    check_lines(model, lines, first);
    const std::vector<Prediction> predictions = predictor.predict(lines, options.search);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (predictions[i].cut)
        fmt::print(stderr, "attend: standard input, line {}: cut to the first {} symbols\n",
                   first + static_cast<int64_t>(i), model.model.maximum_source_length());
      print_answer(options, model, lines[i], predictions[i]);
    }
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
  }
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
  command->add_flag("--json", options->json, "one JSON object a line");
  command->footer(
      "Examples:\n"
      "  echo attention | attend predict model\n"
      "  attend predict model --beam 5 --nbest 3 < words.txt\n"
      "Output: one answer a line; with --nbest N, lines of source TAB answer TAB score; with "
      "--json,\n"
      "  {\"source\", \"predictions\": [{\"target\", \"score\", \"log_probability\", "
      "\"complete\"}], \"cut\"}.");
  command->callback([options] { run_predict(*options); });
}

}  // namespace attend
