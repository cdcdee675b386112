#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/mechanisms/mechanism_pages.h"
#include "attend/mechanisms/mechanism_pictures.h"

namespace attend {
namespace {

struct MechanismsOptions {
  std::string name;
  std::string pictures;
  bool as_json = false;
  bool markdown = false;
};

void run(const MechanismsOptions& options) {
  if (!options.name.empty()) {
    const Mechanism& row = mechanism(options.name);
    fmt::print("{}", options.as_json ? mechanism_json(row).dump() + "\n" : mechanism_text(row));
  } else if (!options.pictures.empty()) {
    const size_t drawn = draw_mechanisms(options.pictures);
    fmt::print("{} pictures in {}\n", drawn, options.pictures);
  } else if (options.markdown) {
    fmt::print("{}", mechanisms_markdown());
  } else {
    fmt::print("{}", options.as_json ? mechanisms_json().dump() + "\n" : mechanisms_text());
  }
}

constexpr const char* mechanisms_footer =
    R"(--json prints one object: mechanisms (name, title, source, formula, queries, memory, choices
with score, scope, bias and normaliser, decoder_query, parameters, time, space, carries, paths, module,
refusal, command), scores (name, formula, source, family, looks_back, parameters), scopes (name,
syntax, meaning), biases (name, formula, source, parameters), normalisers (name, syntax, formula,
source, looks_back). Of one mechanism: its entry of mechanisms.

Examples:
  attend mechanisms
  attend mechanisms bahdanau
  attend mechanisms --markdown > docs/mechanisms.md
  attend mechanisms --pictures docs/mechanisms)";

}  // namespace

void add_mechanisms_command(CLI::App& app) {
  auto options = std::make_shared<MechanismsOptions>();
  CLI::App* command = app.add_subcommand(
      "mechanisms", "The mechanisms of attention, and the choices that they are made of");
  CLI::Option* name =
      command->add_option("name", options->name, "a mechanism, to be told all about it");
  CLI::Option* as_json = command->add_flag("--json", options->as_json, "print one JSON object");
  CLI::Option* markdown =
      command->add_flag("--markdown", options->markdown, "print the page docs/mechanisms.md")
          ->excludes(name)
          ->excludes(as_json);
  command
      ->add_option("--pictures", options->pictures,
                   "draw each mechanism's weights on the sentence pair in DIR/pair.json, into DIR")
      ->type_name("DIR")
      ->excludes(name)
      ->excludes(as_json)
      ->excludes(markdown);
  command->footer(mechanisms_footer);
  command->callback([options] { run(*options); });
}

}  // namespace attend
