#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/evidence_text.h"
#include "attend/cli/explain_files.h"
#include "attend/cli/file_formats.h"
#include "attend/cli/named_option.h"
#include "attend/cli/progress.h"
#include "attend/explain/answer_page.h"
#include "attend/explain/explanation_markdown.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/map_graph.h"
#include "attend/explain/weight_grids.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/layer_graph.h"

namespace attend {
namespace {

enum class View { alignment, heads, model, graph };
EnumNames names_of(View) { return {"alignment", "heads", "model", "graph"}; }

struct ExplainOptions : DecodeOptions {
  std::string folder, text, out, target, method;
  View view = View::alignment;
  MethodChoice choice;
  bool json = false, words = false, evidence = false;
};

// The source of a model that reads images or sounds, as it reads it.
std::optional<SourcePicture> source_picture(const Model& model, const std::string& name) {
  if (!model.has_source_image()) return std::nullopt;
  const auto [image, rows, columns] = model.source_image(name);
  return SourcePicture{png_bytes(image), image.height, image.width, rows, columns};
}

TextOptions terminal_options() {
  TextOptions options;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1) return options;
  options.color = std::getenv("NO_COLOR") == nullptr;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
    options.width = size.ws_col;
  return options;
}

Subject explained(const ExplainOptions& options, const Model& model) {
  try {
    Subject subject = answered_subject(model, options.text, options.search, options.target);
    if (subject.truncated)
      fmt::print(stderr, "attend: the text is cut to its {} {} tokens\n",
                 model.continues() || model.ranks() ? "last" : "first", subject.source.size());
    return subject;
  } catch (const SourceError& error) {
    fail("text {}: {}", in_quotes(options.text), error.reason());
  }
}

// The method that is asked for, or what the model's own weights are called.
std::string method_of(const ExplainOptions& options, const Model& model, const Subject& subject) {
  if (!options.method.empty()) return options.method;
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  // A label or a number is read off what layers have mixed, all of it where they only add.
  if ((model.answers_labels() || model.answers_numbers()) && layers_add(subject) &&
      why_not(find_method("rollout"), subject, trace).empty())
    return "rollout";
  if (model.attends()) return "attention";
  fail(
      "{}: was trained with {}, so it has no weights that could be shown; take --method gradient "
      "or another that needs none",
      options.folder, model.why_no_weights());
}

void add_tokens(const ExplainOptions& options, const std::vector<std::string>& rows,
                const std::vector<std::string>& columns, const at::Tensor& map,
                const std::string& title, std::vector<Alignment>& maps) {
  if (!options.words) {
    maps.push_back({columns, rows, grid_of(map), title});
    return;
  }
  const WordGroups of_rows = group_words(rows), of_columns = group_words(columns);
  maps.push_back(
      {of_columns.words, of_rows.words, grid_of(merge_words(map, of_rows, of_columns)), title});
}

void show_method(const ExplainOptions& options, const Subject& subject, const std::string& name,
                 Shown& shown) {
  const MethodRow& row = find_method(name);
  const at::Tensor scores = method_scores(row, subject, options.choice);
  TestedMethod method{&row, scores.slice(0, 0, std::ssize(subject.target))};
  if (options.evidence)
    method.card = evidence_card(EvidenceTester(subject).measure(row, scores, {}, options.choice));
  const std::string title = options.method.empty() ? "" : name;
  add_tokens(options, subject.target, subject.source,
             drawn_scores(row, method.scores).to(at::kFloat), title, shown.maps);
  if (row.scale != ScoreScale::weights) {
    std::vector<Alignment> exact;
    add_tokens(options, subject.target, subject.source, method.scores.to(at::kFloat), title, exact);
    shown.maps.back().scores = exact[0].weights;
  }
  shown.methods.push_back(std::move(method));
}

std::vector<LayerMap> viewed_layers(const ExplainOptions& options, const Subject& subject) {
  const at::NoGradGuard not_recorded;
  auto maps = layer_maps(subject, trace_network(subject.network(), subject.batch));
  if (maps.empty())
    fail("--view {}: nothing in the model attends with weights; take --method gradient",
         name_of(options.view));
  return maps;
}

LayerMap one_head(const LayerMap& map, int64_t head) {
  const int64_t heads = map.weights.size(0);
  if (head < 1 || head > heads) fail("--head {}: {} has {}", head, map.name, heads);
  LayerMap one = map;
  one.weights = map.weights.narrow(0, head - 1, 1);
  return one;
}

void show_graph(const ExplainOptions& options, const Subject& subject, Shown& shown) {
  if (options.choice.layer) fail("--layer: --view graph shows all layers; take --view heads");
  if (options.out.empty() || options.json)
    fail("--view graph: is a picture; name a file with --out that ends in {}",
         listed_layer_graph_files());
  std::vector<LayerMap> maps = viewed_layers(options, subject);
  for (LayerMap& map : maps) {
    if (options.choice.head) map = one_head(map, *options.choice.head);
    if (options.words) map = merge_words(map);
  }
  shown.graph = layer_graph(maps);
  shown.graph->around_first = subject.model.graph != nullptr;
}

void show_layers(const ExplainOptions& options, const Subject& subject, Shown& shown) {
  const std::vector<LayerMap> maps = viewed_layers(options, subject);
  const auto layer = options.choice.layer.value_or(std::ssize(maps));
  if (layer < 1 || layer > std::ssize(maps))
    fail("--layer {}: there are {} in --view {}: {}", layer, maps.size(), name_of(options.view),
         [&] {
           std::string names;
           for (size_t i = 0; i < maps.size(); ++i)
             names += fmt::format("{}{} {}", i == 0 ? "" : ", ", i + 1, maps[i].name);
           return names;
         }());
  const bool all = options.view == View::model && !options.choice.layer;
  for (size_t i = 0; i < maps.size(); ++i) {
    if (!all && static_cast<int64_t>(i) + 1 != layer) continue;
    if (shown.maps.empty())
      shown.of_one_sequence = maps[i].row_sequence() == maps[i].column_sequence();
    const int64_t first = options.choice.head.value_or(1);
    const int64_t last = options.choice.head.value_or(maps[i].weights.size(0));
    for (int64_t head = first; head <= last; ++head)
      add_tokens(options, maps[i].rows, maps[i].columns, one_head(maps[i], head).weights[0],
                 fmt::format("{}, head {}", maps[i].name, head), shown.maps);
  }
}

std::string page(const ExplainOptions& options, const Subject& subject,
                 const std::optional<SourcePicture>& picture) {
  const at::NoGradGuard not_recorded;
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  const MethodRow* only = options.method.empty() ? nullptr : &find_method(options.method);
  CountPrinter printer("tested");
  const TestedMethods tested =
      test_methods(subject, trace, only, options.choice,
                   [&](int64_t done, int64_t total) { printer.show(done, total); });
  std::ostringstream out;
  write_page(out, answer_page(subject, tested, layer_maps(subject, trace), picture));
  return out.str();
}

// What is asked for but in the file.
void print(const ExplainOptions& options, const Shown& shown) {
  if (options.json) {
    fmt::print("{}", shown_json(shown));
    return;
  }
  if (options.out.empty())
    for (const Alignment& map : shown.maps)
      fmt::print("{}", alignment_text(map, terminal_options()));
  for (const TestedMethod& method : shown.methods) fmt::print("{}", evidence_text(method.card));
}

void run_explain(const ExplainOptions& options) {
  if (options.evidence && options.view != View::alignment)
    fail("--evidence: tests the map of a method; leave --view {} out", name_of(options.view));
  ModelOptions loading = options.model;
  loading.threads = 1;
  const Model model(options.folder, loading);
  const Subject subject = explained(options, model);
  const std::string method = method_of(options, model, subject);
  const ExplainFile* file = format_of(explain_files(), options.out);
  const bool whole_page = file && file->page;
  Shown shown;
  shown.text = options.text;
  if (!whole_page || options.json) {
    if (options.view == View::alignment) {
      show_method(options, subject, method, shown);
      shown.picture = source_picture(model, options.text);
    } else if (options.view == View::graph) {
      show_graph(options, subject, shown);
    } else {
      show_layers(options, subject, shown);
    }
  }
  print(options, shown);
  if (options.out.empty()) return;
  write_file(options.out, whole_page ? page(options, subject, source_picture(model, options.text))
                                     : explain_file(options.out, shown));
  fmt::print(stderr, "wrote {}\n", options.out);
}

std::string footer() {
  std::string text = "Methods (T tokens of the answer, S of the source):\n";
  for (const MethodRow& row : method_table())
    text += fmt::format("  {:<21} {}: {} ({})\n", row.name, row.formula, row.meaning, row.paper);
  return text +
         "Views:\n"
         "  alignment   what each token of the answer came from, by a method\n"
         "  heads       each head of one layer, --layer N\n"
         "  model       each head of every layer\n"
         "  graph       all layers as one graph of tokens, of a node the nodes around it, to "
         "--out\n"
         "              FILE that ends in " +
         listed_layer_graph_files() +
         "\n"
         "Examples:\n"
         "  attend explain model attention\n"
         "  attend explain model attention --out attention.html\n"
         "  attend explain model attention --method integrated_gradients --evidence\n"
         "  attend explain model attention --view heads --layer 1 --out heads.png\n"
         "  attend explain model attention --view graph --out graph.svg\n"
         "  attend explain model attention --target 'AH0 T' --out attention.align\n"
         "  attend explain model images.idx:17 --method grad_cam --out image.png\n"
         "  attend explain model 'CC(=O)N' --view heads --layer 1 --head 2 --out x.molecule.svg";
}

}  // namespace

void add_explain_command(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command =
      app.add_subcommand("explain", "Show which source tokens each target token came from");
  command->add_option("model", options->folder, "model folder")->required();
  add_search_options(*command, *options);
  command
      ->add_option("text", options->text,
                   "what to answer and explain: a text, or the file of an image or a sound or the "
                   "name of a node where the model reads such")
      ->required();
  command->add_option("--target", options->target, "explain this answer in place of the model's");
  command->add_option("--method", options->method, "how; else the weights: see below");
  add_named_option<View>(*command, "--view", options->view, "what to show");
  command->add_option("--layer", options->choice.layer, "from 1; else the last");
  command->add_option("--head", options->choice.head, "from 1; else all, or their mean");
  command->add_flag("--words", options->words, "join pieces of words, written with @@, to words");
  command->add_flag("--evidence", options->evidence,
                    "test whether the answer depends on what the map points at");
  command->add_option("--out", options->out, "file to write: " + listed_explain_files());
  command->add_flag(
      "--json", options->json,
      "print {title, source, target, weights, scores, evidence: [{name, value, bar, passed, "
      "missing}]}");
  // Needs no model.
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
