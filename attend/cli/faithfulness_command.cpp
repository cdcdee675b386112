#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attend/base/error.h"
#include "attend/base/file_formats.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/evidence_text.h"
#include "attend/cli/output_file.h"
#include "attend/cli/progress.h"
#include "attend/explain/explanation_json.h"
#include "attend/explain/faithfulness.h"
#include "attend/inference/evaluation.h"
#include "attend/pictures/render.h"

namespace attend {
namespace {

struct FaithfulnessCommand {
  std::string folder, data, out, source_column, target_column;
  std::vector<std::string> methods, figures;
  FaithfulnessOptions options;
  bool json = false;
};

std::string table(const Faithfulness& measured) {
  std::string text;
  const MethodRow* method = nullptr;
  for (const FaithfulnessFigure& one : measured.figures) {
    if (one.method != method) text += fmt::format("{}{}\n", method ? "\n" : "", one.method->name);
    method = one.method;
    if (one.examples == 0) {
      text += fmt::format("  {:<28} {:>7}  not computed: {}\n", one.figure->name, "-", one.missing);
      continue;
    }
    text += fmt::format("  {:<28} {:7.3f} [{:6.3f}, {:6.3f}]  {}", one.figure->name, one.mean,
                        one.low, one.high,
                        verdict(bar_text(*one.figure, one.other), one.passed,
                                one.figure->compares ? "" : "the whole interval "));
    if (one.figure->compares)
      text += fmt::format("; difference [{:.3f}, {:.3f}]", one.difference_low, one.difference_high);
    if (!one.missing.empty())
      text += fmt::format(" (over {} of {}; not computed: {})", one.examples, measured.examples,
                          one.missing);
    text += '\n';
  }
  return text;
}

// File type of a picture, by its suffix.
struct PictureFile {
  std::string_view suffix, note;
  std::string (*write)(const std::string& svg);
};

const std::vector<PictureFile>& picture_files() {
  static const std::vector<PictureFile> table = {
      {".svg", "", [](const std::string& svg) { return svg; }},
      {".png", "", [](const std::string& svg) { return render_png(svg); }}};
  return table;
}

void run_faithfulness(FaithfulnessCommand command) {
  const PictureFile* file = format_of(picture_files(), command.out);
  if (!command.out.empty() && !file)
    fail("--out {}: the name must end in {}", command.out,
         listed_formats(picture_files(), [](const PictureFile&) { return true; }));
  for (const std::string& name : command.methods)
    command.options.methods.push_back(&find_method(name));
  for (const std::string& name : command.figures)
    command.options.figures.push_back(&find_figure(name));
  ModelOptions loading;
  loading.threads = command.options.threads;
  const Model model(command.folder, loading);
  const std::vector<Example> examples =
      test_examples(model, {command.data, "", command.source_column, command.target_column},
                    model.text(), print_remark);
  CountPrinter printer("explained");
  const Faithfulness measured =
      measure_faithfulness(model, examples, command.options,
                           [&](int64_t done, int64_t total) { printer.show(done, total); });
  if (command.json)
    fmt::print("{}\n", faithfulness_json(measured));
  else
    fmt::print("{} answers, means and 95 % intervals\n\n{}", measured.examples, table(measured));
  for (const LeftOut& one : measured.left_out)
    fmt::print(stderr, "left out: {}\n", left_out_text(one, measured));
  if (command.out.empty()) return;
  write_file(command.out, file->write(faithfulness_svg(measured, command.folder)));
  fmt::print(stderr, "wrote {}\n", command.out);
}

}  // namespace

void add_faithfulness_command(CLI::App& app) {
  auto options = std::make_shared<FaithfulnessCommand>();
  auto* command = app.add_subcommand(
      "faithfulness",
      "Test over a data set whether answers depend on the tokens that maps point at");
  command->add_option("model", options->folder, "model folder")->required();
  command
      ->add_option("--data", options->data,
                   "TSV, CSV or JSON Lines file of pairs, or a folder with test.tsv")
      ->required();
  add_column_options(*command, options->source_column, options->target_column);
  command
      ->add_option("--method", options->methods,
                   "methods of attend explain, separated by commas; default: all that apply")
      ->delimiter(',');
  command->add_option("--figure", options->figures, "figures, separated by commas; default: all")
      ->delimiter(',');
  command
      ->add_option("--examples", options->options.examples,
                   "number of examples, evenly spaced; 0: all")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  command->add_flag("--forced", options->options.forced,
                    "explain the targets of the data instead of the model's answers");
  command
      ->add_option("--threads", options->options.threads,
                   "number of examples in parallel; default: one per core")
      ->check(CLI::Range(1, 1024));
  add_output_file(*command, "--out", options->out, "picture to write: .svg or .png");
  command->add_flag("--json", options->json, "print one JSON document");
  command->footer(
      "Examples:\n"
      "  attend faithfulness model --data test.tsv\n"
      "  attend faithfulness model --data test.tsv --method attention,gradient_x_input --out "
      "faithfulness.svg\n"
      "A figure passes if its whole interval meets the bar. A figure with a comparison passes\n"
      "if the interval of the difference meets it.\n"
      "JSON: {examples, methods: {METHOD: {FIGURE: {examples, mean, low, high, compared_with,\n"
      "bar, passed, difference_low, difference_high, missing}}}, left_out: [{method, examples,\n"
      "why}]}.\n"
      "If no example has a figure, its numbers are null, and missing gives the reason. An entry\n"
      "of left_out without a method is a whole example.\n"
      "Agreement of two methods proves nothing by itself (Neely et al. 2022).");
  command->callback([options] { run_faithfulness(*options); });
}

}  // namespace attend
