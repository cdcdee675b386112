#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/output_line.h"
#include "attend/cli/setting_options.h"
#include "attend/cli/source_lines.h"
#include "attend/files/json_line.h"
#include "attend/inference/answer_json.h"

namespace attend {
namespace {

struct PredictOptions : DecodeOptions {
  Sampling sampling;
  bool prefixes = false;
  bool json = false;
  bool details = false;
};

// Answers of models of texts may contain line breaks and TABs; bytes may, too.
std::string answer_line(const Model& model, const std::string& text, bool in_record) {
  return in_one_line(text, model.answer_kind().is_text() ? text_breaks
                           : in_record                   ? field_breaks
                                                         : line_breaks);
}

void print_answer(const PredictOptions& options, const Model& model, const std::string& source,
                  const Answer& answer) {
  if (options.json) {
    fmt::print("{}\n", json_line(answer_json(model, source, answer, options.details)));
    return;
  }
  if (options.search.nbest == 1) {
    const std::string text = answer.candidates.empty() ? "" : answer.best().text;
    fmt::print("{}\n", answer_line(model, text, /*in_record=*/false));
    return;
  }
  const std::string asked = in_one_line(source, field_breaks);
  if (answer.candidates.empty()) fmt::print("{}\t\t\n", asked);
  for (const Candidate& candidate : answer.candidates)
    fmt::print("{}\t{}\t{:.4f}\n", asked, answer_line(model, candidate.text, /*in_record=*/true),
               candidate.score);
}

// Counts for the reports after the last answer.
struct Tally {
  int64_t lines = 0;
  int64_t converted_to_grey = 0;
  int64_t answers = 0, cut = 0;
  int64_t tabs = 0;  // lines with a TAB
  UnknownCount unknown;

  void add(const Answer& answer) {
    ++lines;
    converted_to_grey += answer.converted_to_grey ? 1 : 0;
    for (const Candidate& candidate : answer.candidates) {
      ++answers;
      cut += candidate.complete ? 0 : 1;
    }
    unknown.add(std::ssize(answer.source), answer.unknown, lines);
  }

  void tell(const Model& model) const {
    unknown.tell("");
    if (tabs > 0)
      fmt::print(
          stderr,
          "attend: {} of {} lines have a TAB, and the text after it is read as a part of the "
          "source; give only sources{}\n",
          tabs, lines, model.answer_kind().is_tags() ? ", one whole sentence per line" : "");
    if (converted_to_grey > 0)
      fmt::print(stderr,
                 "attend: {} of {} sources are in colour and read in grey (data.colours = false)\n",
                 converted_to_grey, lines);
    // A continuation of a text has no end of its own.
    if (cut > 0 && !model.answer_kind().continues())
      fmt::print(
          stderr,
          "attend: {} of {} answers are cut at the maximum length; --maximum-length sets it\n", cut,
          answers);
  }
};

// Whether a TAB in a line is a fault: it separates no texts, and no kind of source refuses it.
bool has_stray_tabs(const PredictOptions& options, const Model& model) {
  return !options.prefixes && model.text().pairs == PairTexts::never &&
         model.text().source_kind() == nullptr && !model.answer_kind().is_text();
}

// Prints the answers to a portion of lines. With --prefixes a source ends at the first TAB, and the
// rest is the prefix.
void answer_lines(const PredictOptions& options, const Model& model, std::vector<std::string> texts,
                  SourceLines& lines, Tally& tally) {
  std::vector<std::string> prefixes;
  prefixes.reserve(texts.size());
  if (options.prefixes)
    for (std::string& text : texts) {
      const size_t tab = text.find('\t');
      prefixes.push_back(tab == std::string::npos ? "" : text.substr(tab + 1));
      text.resize(std::min(tab, text.size()));
    }
  if (has_stray_tabs(options, model))
    tally.tabs += std::count_if(texts.begin(), texts.end(), [](const std::string& text) {
      return text.find('\t') != std::string::npos;
    });
  const auto first = static_cast<size_t>(lines.number(0) - 1);
  FunctionSink sink([&](size_t number, const Answer& answer) {
    const size_t i = number - first;
    if (answer.truncated) lines.tell_truncated(i, model);
    if (!answer.error.empty()) lines.tell_bad(i, answer.error);
    tally.add(answer);
    print_answer(options, model, texts[i], answer);
  });
  std::vector<Request> requests = requests_of(texts, options.search, &sink, prefixes);
  for (Request& request : requests) request.number += first;
  lines.ask([&] { model.answer_each(std::move(requests)); });
  flush_output();
}

void check_search(const SearchOptions& search) {
  if (!search.sampling && search.nbest > search.beam)
    fail("--nbest {}: a beam of {} has no more answers; raise --beam", search.nbest, search.beam);
  search.check();
}

void run_predict(PredictOptions& options) {
  if (options.details && !options.json) fail("--details needs --json; add it");
  const Model model = Model::ensemble(options.models, options.model);
  take_search_defaults(options, model);
  model.answer_kind().fit(options.search);
  check_search(options.search);
  check_decode_options(options, model);
  SourceLines lines(options.model.skip_bad);
  std::vector<std::string> texts;
  Tally tally;
  const auto answer_bad = [&](const std::string& error) {
    Answer none;
    none.error = error;
    tally.add(none);
    print_answer(options, model, "", none);
  };
  while (lines.read(texts, answer_bad))
    answer_lines(options, model, std::move(texts), lines, tally);
  tally.tell(model);
  lines.end("answers");
}

// Any of these options requests sampling.
void add_sampling_options(CLI::App& command, PredictOptions& options) {
  Sampling& sampling = options.sampling;
  std::vector<CLI::Option*> all = {
      command.add_option("--samples", options.search.nbest, "number of answers to draw per line")
          ->check(CLI::Range(1, 1000)),
      command.add_option("--seed", sampling.seed, "random seed")->capture_default_str()};
  for (const Setting& setting : sampling.settings())
    all.push_back(add_setting_option(command, setting, setting.help));
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
  const Setting nbest = setting_of(options->search.settings(), "nbest");
  add_setting_option(*command, nbest, nbest.help)->capture_default_str();
  add_sampling_options(*command, *options);
  command->add_flag("--prefixes", options->prefixes,
                    "lines are a source, a TAB and the beginning of the answer");
  command->add_flag(
      "--skip-bad", options->model.skip_bad,
      "answer an unreadable line with an empty line and report it; default: stop there");
  command->add_flag("--json", options->json, "one JSON object per line");
  command->add_flag("--details", options->details,
                    "with --json: tokens, their probabilities and attention weights");
  command->footer(
      "Examples:\n"
      "  echo attention | attend predict model\n"
      "  attend predict model --beam 5 --nbest 3 < words.txt\n"
      "  attend predict run-1 run-2 run-3 --beam 5 < words.txt\n"
      "  attend predict model --samples 3 --top-p 0.9 --seed 7 < words.txt\n"
      "  attend predict reader --nbest 3 --json < questions.tsv   # question TAB passage\n"
      "  attend predict shop --beam 10 --nbest 10 < histories.txt   # the next items\n"
      "Output: one answer per line; with --nbest or --samples of N, lines of source TAB answer\n"
      "TAB score; with --json,\n"
      "  {\"source\", \"predictions\": [{\"target\", \"score\", \"log_probability\", "
      "\"complete\"}], \"cut\",\n"
      "  \"unknown\": [source tokens that the model does not know], with --skip-bad \"error\"};\n"
      "a prediction that is a number has only target and number, one of several labels also\n"
      "labels: [{label, probability}], a span also start and end, in characters of the second\n"
      "text, and its probability as score. With --details also source_tokens, source_spans of\n"
      "imported models ([first, end] in characters of the source, or null), and for each\n"
      "prediction tokens, log_probabilities (the last is the end token's; labels lack it) and\n"
      "weights [tokens, source_tokens].\n"
      "Without --json, line breaks in answers are \\n and carriage returns \\r, TABs of a line\n"
      "of several fields \\t; in answers of language models and encoders TABs are always \\t,\n"
      "and backslashes \\\\.\n"
      "At the end standard error reports the number of unknown source tokens and of answers\n"
      "that were cut at the maximum length (complete is false). With --skip-bad, a line that\n"
      "cannot be read makes the exit code 1.\n"
      "Answers are drawn if --samples, --temperature, --top-k, --top-p or --seed is given; the\n"
      "answer to a line depends only on the seed and the number of the line.\n"
      "On the CPU the output for a line is the same, to the last digit, whatever the other\n"
      "lines, their order and --threads; on another kind of processor last digits may differ.");
  command->callback([options] {
    SearchOptions& search = options->search;
    if (search.sampling) search.sampling = options->sampling;
    search.with_weights = options->details;
    run_predict(*options);
  });
}

}  // namespace attend
