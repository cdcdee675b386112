#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/explain/alignment.h"
#include "attend/explain/source_panels.h"

namespace attend {
namespace {

struct ExplainOptions : DecodeOptions {
  std::string folder, text, out;
  bool json = false;
};

Alignment align(const ExplainOptions& options, const Model& model) {
  if (!model.attends())
    fail("{}: was trained with {}, so it has no weights that could be shown", options.folder,
         model.why_no_weights());
  SearchOptions search = options.search;
  search.with_weights = true;
  Answer answer;
  try {
    answer = std::move(model.answer({options.text}, search)[0]);
  } catch (const SourceError& error) {
    fail("text {}: {}", in_quotes(options.text), error.reason());
  }
  if (answer.source.empty()) fail("the text is empty; give one to explain");
  if (answer.truncated)
    fmt::print(stderr, "attend: the text is cut to its {} {} tokens\n",
               model.continues() ? "last" : "first", answer.source.size());
  const Candidate& best = answer.best();
  return make_alignment(answer.source, best.tokens, best.weights);
}

// The source of a model that reads images or sounds, as it reads it.
std::optional<SourcePicture> source_picture(const Model& model, const std::string& name) {
  if (!model.reads_files()) return std::nullopt;
  const auto [image, rows, columns] = model.source_image(name);
  return SourcePicture{png_bytes(image), image.height, image.width, rows, columns};
}

std::string terminal_picture(const Alignment& alignment) {
  TextOptions options;
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1) {
    options.color = std::getenv("NO_COLOR") == nullptr;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
      options.width = size.ws_col;
  }
  return alignment_text(alignment, options);
}

std::string picture(const std::string& path, const Alignment& alignment,
                    const std::optional<SourcePicture>& source) {
  if (source && path.ends_with(".svg")) return panels_svg(alignment, *source);
  if (source && path.ends_with(".png")) return panels_png(alignment, *source);
  if (source && path.ends_with(".html")) return panels_html(alignment, *source);
  if (path.ends_with(".svg")) return alignment_svg(alignment);
  if (path.ends_with(".png")) return alignment_png(alignment);
  if (path.ends_with(".html")) return alignment_html(alignment);
  if (path.ends_with(".json")) return alignment_json(alignment) + '\n';
  fail("--out {}: the name must end in .svg, .png, .html or .json", path);
}

void run_explain(const ExplainOptions& options) {
  ModelOptions loading = options.model;
  loading.threads = 1;
  const Model model(options.folder, loading);
  const Alignment alignment = align(options, model);
  if (options.json)
    fmt::print("{}\n", alignment_json(alignment));
  else if (options.out.empty())
    fmt::print("{}", terminal_picture(alignment));
  if (options.out.empty()) return;
  write_file(options.out, picture(options.out, alignment, source_picture(model, options.text)));
  fmt::print(stderr, "wrote {}\n", options.out);
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
                   "what to answer and explain: a text, or the file of an "
                   "image or a sound where the model reads such")
      ->required();
  command->add_option("--out", options->out, "picture to write: .svg, .png, .html or .json");
  command->add_flag("--json", options->json, "print {title, source, target, weights}");
  command->footer(
      "Examples:\n"
      "  attend explain model attention\n"
      "  attend explain model attention --out attention.svg\n"
      "  attend explain model images.idx:17 --out image.png");
  command->callback([options] { run_explain(*options); });
}

}  // namespace attend
