#include <fmt/format.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/file_formats.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/evidence_text.h"
#include "attend/cli/named_option.h"
#include "attend/cli/output_file.h"
#include "attend/cli/progress.h"
#include "attend/cli/source_lines.h"
#include "attend/cli/terminal.h"
#include "attend/explain/explained_answer.h"
#include "attend/explain/explanation_markdown.h"
#include "attend/explain/methods.h"
#include "attend/pictures/alignment.h"

namespace attend {
namespace {

struct ExplainOptions : DecodeOptions {
  std::string folder, out;
  ExplanationRequest request;
  bool json = false;
};

TextOptions terminal_options() {
  TextOptions options;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1) return options;
  options.color = shows_colors(STDOUT_FILENO);
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
    options.width = size.ws_col;
  return options;
}

std::shared_ptr<const ExplainedAnswer> explained_answer(const ExplainOptions& options,
                                                        const Model& model) {
  std::optional<CountPrinter> printer;
  ExplanationWatch watch;
  watch.answered = [&](const Subject& subject) {
    if (subject.truncated)
      fmt::print(stderr, "attend: the text is cut to its {} {} tokens\n",
                 model.answer_kind().kept_part(), subject.source.size());
    printer.emplace("tested");
  };
  watch.report = [&](int64_t done, int64_t total) { printer->show(done, total); };
  try {
    return explain_answer(model, options.request, watch);
  } catch (const SourceError& error) {
    fail("text {}: {}", in_quotes(options.request.text), error.reason());
  }
}

std::string file_bytes(const ExplainOptions& options, const ExplainedAnswer& explained) {
  try {
    return explained_file(explained, *options.request.file);
  } catch (const Error& error) {
    fail("--out {}: {}", options.out, error.what());
  }
}

// Prints the heads of the map, sorted by the loss of the answer without them, largest first.
void print_effects(const Alignment& map) {
  struct Row {
    std::string head;
    double effect;
  };
  std::vector<Row> rows;
  for (size_t row = 0; row < map.target.size(); ++row)
    for (size_t column = 0; column < map.source.size(); ++column)
      rows.push_back({fmt::format("{}.head.{}", map.target[row], column + 1),
                      map.scores->at(static_cast<int64_t>(row), static_cast<int64_t>(column))});
  std::erase_if(rows, [](const Row& row) { return std::isnan(row.effect); });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.effect > b.effect; });
  fmt::print("  {:<28} {:>12}\n", "without", "loses");
  for (const Row& row : rows) fmt::print("  {:<28} {:>12.4f}\n", row.head, row.effect);
}

// Prints the results that the file does not contain.
void print(const ExplainOptions& options, const Shown& shown) {
  if (options.json) {
    fmt::print("{}", shown_json(shown));
    return;
  }
  const ExplanationView view = options.request.show.view;
  if (options.out.empty() && view == ExplanationView::effects)
    print_effects(shown.maps[0]);
  else if (options.out.empty() && view != ExplanationView::scores)
    for (const Alignment& map : titled_maps(shown))
      fmt::print("{}", alignment_text(map, terminal_options()));
  for (const TestedMethod& method : shown.methods) fmt::print("{}", evidence_text(method.card));
  if (!shown.sum) return;
  if (options.out.empty()) fmt::print("{}", sum_text(*shown.sum));
  fmt::print("{}", evidence_text(shown.sum->card));
}

void print_knock_out(const ExplainOptions& options, const Model& model, const KnockOut& effect) {
  if (options.json) {
    fmt::print("{}\n", knock_out_json(effect));
    return;
  }
  const bool number = !model.answer_kind().has_probabilities();
  const char* value = number                            ? "number"
                      : options.request.against.empty() ? "log probability"
                                                        : "log odds";
  fmt::print("{:<16} {:.4f}, without {} {:.4f}\n", value, effect.before, effect.without,
             effect.after);
  if (!number)
    fmt::print("{:<16} {} of {} positions have another token\n", "changed", effect.changed,
               effect.places);
  fmt::print("{:<16} {}\n", "answer then", effect.new_answer);
}

// Sets the kind of the file. Error if it cannot be written.
void take_file(ExplainOptions& options) {
  ExplanationRequest& request = options.request;
  const bool is_graph = request.show.view == ExplanationView::graph;
  if (is_graph && (options.out.empty() || options.json))
    fail("--view graph: is a picture; name a file with --out that ends in {}",
         listed_layer_graph_files());
  request.with_maps = options.json;
  if (options.out.empty()) return;
  if (!request.without.empty()) {
    check_takes_no_map(request.show);
    fail("without: reports how the answer changes and makes no file; leave --out out");
  }
  request.file = format_of(explain_files(), options.out);
  if (is_graph && (!request.file || (!request.file->graph && !request.file->page)))
    fail("--out {}: a graph's name must end in {}", options.out, listed_layer_graph_files());
  if (!request.file) fail("--out {}: the name must end in {}", options.out, listed_explain_files());
}

void run_explain(ExplainOptions& options) {
  // Otherwise gaps between the vectors of a long text fragment the heap: a sixth of the memory for
  // the gradient of 512 tokens.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  take_file(options);
  ModelOptions loading = options.model;
  loading.threads = 1;
  const Model model(options.folder, loading);
  take_search_defaults(options, model);
  options.request.search = options.search;
  const auto explained = explained_answer(options, model);
  if (explained->knock_out)
    print_knock_out(options, model, *explained->knock_out);
  else
    print(options, explained->shown);
  if (options.request.file) {
    write_file(options.out, file_bytes(options, *explained));
    fmt::print(stderr, "wrote {}\n", options.out);
  }
  const Subject& subject = explained->subject;
  if (subject.is_part && model.answer_kind().is_span())
    fmt::print(stderr,
               "attend: the passage is long; only the {} tokens around the answer are shown\n",
               subject.source.size());
  else if (subject.is_part)
    fmt::print(stderr,
               "attend: only the first {} tokens of the answer are explained; the context of the "
               "model has no room for more\n",
               subject.target.size());
  if (subject.converted_to_grey)
    fmt::print(stderr, "attend: the image is in colour and read in grey (data.colours = false)\n");
  // A continuation of a text has no end of its own.
  if (!subject.complete && !model.answer_kind().continues())
    fmt::print(stderr,
               "attend: the answer is cut at the maximum length, {} tokens; --maximum-length sets "
               "it\n",
               subject.target.size());
}

std::string footer() {
  std::string text = "Methods (T tokens of the answer, S of the source):\n";
  for (const MethodRow& row : method_table())
    text += fmt::format("  {:<21} {}: {} ({})\n", row.name, row.formula, row.meaning, row.paper);
  return text +
         "Views:\n"
         "  alignment   source tokens that each token of the answer depends on, by a method\n"
         "  heads       each head of one layer, --layer N\n"
         "  model       each head of every layer\n"
         "  graph       all layers as one graph of tokens, or the neighbourhood of a node, to "
         "--out\n"
         "              FILE that ends in " +
         listed_layer_graph_files() +
         "\n"
         "  lens        the answer read off each layer (logit lens, nostalgebraist 2020)\n"
         "  effects     loss of log probability, in nats, without each head\n"
         "  contacts    probability that two tokens touch, from all heads (ESM-2)\n"
         "  scores      one score of a head, named by --at, as a sum over pairs of components\n"
         "Heads, for --without: encoder.1.head.2, decoder.1.self, decoder.1-3.source.head.4, "
         "layer.2, pooling\n"
         "Edges of heads, for --without: encoder.1.head.2.query.3.key.1-2, layer.2.key.1\n"
         "One edge, for --at: encoder.1.head.2.query.3.key.1\n"
         "Examples:\n"
         "  attend explain model attention\n"
         "  attend explain model attention --out attention.html\n"
         "  attend explain model attention --method integrated_gradients --evidence\n"
         "  attend explain model attention --against 'T' --method integrated_gradients\n"
         "  attend explain model attention --without decoder.1.source.head.2,encoder.1\n"
         "  attend explain model attention --view heads --layer 1 --out heads.png\n"
         "  attend explain minilm 'A cat sat down.' --pair 'Two kittens rest.' --out pair.html\n"
         "  attend explain model attention --view graph --out graph.svg\n"
         "  attend explain model attention --view scores --at encoder.2.head.1.query.3.key.1\n"
         "  attend explain model attention --target 'AH0 T' --out attention.align\n"
         "  attend explain model images.idx:17 --method grad_cam --out image.png\n"
         "  attend explain model 'CC(=O)N' --view heads --layer 1 --head 2 --out x.molecule.svg";
}

}  // namespace

void add_explain_command(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command =
      app.add_subcommand("explain", "Show which source tokens each target token depends on");
  command->add_option("model", options->folder, "model folder")->required();
  add_search_options(*command, *options);
  command
      ->add_option(
          "text", options->request.text,
          "source to answer and explain, as the model reads it: a text, the file of an image "
          "or a sound, or the name of a node")
      ->required();
  command->add_option("--target", options->request.target,
                      "answer to explain, not the model's own");
  command->add_option("--against", options->request.against,
                      "explain why the answer and not this one: one token for every position, or "
                      "one token per position");
  command->add_option_function<std::string>(
      "--pair", [options](const std::string& text) { options->request.pair = text; },
      "explain why the model finds the text and this one alike (sentence encoders)");
  command
      ->add_option(
          "--without", options->request.without,
          "report how the answer changes without these heads or edges, instead of a map: see below")
      ->delimiter(',');
  add_named_option<Ablation>(*command, "--ablation", options->request.show.ablation,
                             "output of heads that are off: zeros, or their mean over the answer");
  command->add_option(
      "--method", options->request.show.method,
      "method, see below; default: attention; rollout for labels of transformers; occlusion "
      "for models without attention weights and with --against");
  add_named_option<ExplanationView>(*command, "--view", options->request.show.view,
                                    "view, see below");
  command->add_option("--at", options->request.show.edge,
                      "the score to show with --view scores: encoder.3.head.5.query.7.key.2");
  command->add_option("--layer", options->request.show.choice.layer,
                      "layer, from 1; default: the last");
  command->add_option("--head", options->request.show.choice.head,
                      "head, from 1; default: all heads, or their mean");
  command->add_flag("--words", options->request.show.words,
                    "join pieces of words (with @@) into words");
  command->add_flag("--evidence", options->request.show.evidence,
                    "test whether the answer depends on the tokens that the map points at");
  add_output_file(*command, "--out", options->out, "file to write: " + listed_explain_files());
  command->add_flag(
      "--json", options->json,
      "print {title, source, target, weights, scores, evidence: [{name, value, bar, passed, "
      "missing}], patterns}, with --pair also {measure, similarity}, with --view scores also "
      "{measure, score, weight}, or with --without {without, before, after, changed, places, "
      "answer}");
  command->add_flag_callback(
      "--markdown",
      [] {
        fmt::print("{}", explanation_markdown());
        throw CLI::Success();
      },
      "print the tables of docs/explanation.md and stop");
  command->footer(footer());
  command->callback([options] { run_explain(*options); });
}

}  // namespace attend
