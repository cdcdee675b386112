#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/mechanisms/mechanism_pages.h"
#include "attend/mechanisms/mechanism_pictures.h"

namespace attend {
namespace {

// Output format of the tables.
struct Form {
  const char* flag;  // empty: the default format
  const char* help;
  std::string (*one)(
      const Mechanism& row);  // null: the format supports only all mechanisms together
  std::string (*all)(int since);
};

std::string one_json(const Mechanism& row) { return mechanism_json(row).dump() + "\n"; }
std::string all_json(int since) { return mechanisms_json(since).dump() + "\n"; }
std::string page(int) { return mechanisms_markdown(); }

constexpr Form forms[] = {{"", "", mechanism_text, mechanisms_text},
                          {"--json", "print one JSON object", one_json, all_json},
                          {"--markdown", "print the page docs/mechanisms.md", nullptr, page}};

struct MechanismsOptions {
  std::string name;
  std::string pictures;
  int since = 0;
  const Form* form = &forms[0];
};

void run(const MechanismsOptions& options) {
  if (!options.pictures.empty()) {
    const size_t drawn = draw_mechanisms(options.pictures);
    fmt::print("{} pictures in {}\n", drawn, options.pictures);
  } else if (options.name.empty()) {
    fmt::print("{}", options.form->all(options.since));
  } else {
    fmt::print("{}", options.form->one(mechanism(options.name)));
  }
}

constexpr const char* mechanisms_footer =
    R"(--json prints one object: mechanisms (name, title, source, year, changes, parent, used_by, formula,
queries, memory, choices with score, scope, bias and normaliser, decoder_query, parameters, time,
space, carries, cache, paths, module, refusal, command), scores (name, formula, source, family,
looks_back, parameters), scopes (name, syntax, meaning), biases (name, formula, source,
parameters), normalisers (name, syntax, formula, source, looks_back), recurrences (name, title,
formula, source, year, parent, used_by, decay, delta, bonus, strength, unit_keys). For one
mechanism: its entry of mechanisms.

Examples:
  attend mechanisms
  attend mechanisms bahdanau
  attend mechanisms --since 2024
  attend mechanisms --markdown > docs/mechanisms.md
  attend mechanisms --pictures docs/mechanisms)";

}  // namespace

void add_mechanisms_command(CLI::App& app) {
  auto options = std::make_shared<MechanismsOptions>();
  CLI::App* command = app.add_subcommand(
      "mechanisms", "List the attention mechanisms and the choices that they consist of");
  CLI::Option* name = command->add_option("name", options->name, "mechanism to describe");
  CLI::Option* since =
      command
          ->add_option("--since", options->since,
                       "list only mechanisms and recurrences of this year and later")
          ->type_name("YEAR")
          ->check(CLI::Range(1, 9999));
  since->excludes(name);
  std::vector<CLI::Option*> others = {name};
  for (const Form& form : forms) {
    if (*form.flag == '\0') continue;
    CLI::Option* flag = command->add_flag_callback(
        form.flag, [options, &form] { options->form = &form; }, form.help);
    // Formats with `one` also accept a mechanism's name.
    for (CLI::Option* other : others)
      if (other != name || !form.one) flag->excludes(other);
    if (!form.one) flag->excludes(since);
    others.push_back(flag);
  }
  CLI::Option* pictures = command
                              ->add_option("--pictures", options->pictures,
                                           "draw each mechanism's weights on the sentence pair in "
                                           "DIR/pair.json and the family tree, into DIR")
                              ->type_name("DIR");
  for (CLI::Option* other : others) pictures->excludes(other);
  pictures->excludes(since);
  command->footer(mechanisms_footer);
  command->callback([options] { run(*options); });
}

}  // namespace attend
