#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "attend/cli/commands.h"

namespace attend {
namespace {

// What may follow a command: its subcommands, and its options.
struct Words {
  std::string path;  // "attend data images"
  std::vector<std::string> commands, options;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Words>& all) {
  Words words{path, {}, {}};
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : subcommands) words.commands.push_back(each->get_name());
  all.push_back(std::move(words));
  for (const CLI::App* each : subcommands) collect(*each, path + ' ' + each->get_name(), all);
}

std::string script(const CLI::App& app) {
  std::vector<Words> all;
  collect(app, app.get_name(), all);
  std::string commands, options;
  for (const Words& words : all) {
    commands += fmt::format("    [\"{}\"]=\"{}\"\n", words.path, fmt::join(words.commands, " "));
    options += fmt::format("    [\"{}\"]=\"{}\"\n", words.path, fmt::join(words.options, " "));
  }
  return fmt::format(
      R"(# Completion of {0} for bash: source this file, or put it where bash-completion looks.
_{0}() {{
  local -A commands=(
{1}  )
  local -A options=(
{2}  )
  local path={0} word current=${{COMP_WORDS[COMP_CWORD]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ -z ${{commands["$path $word"]+there}} ]] || path="$path $word"
  done
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${{options["$path"]}}" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "${{commands["$path"]}}" -- "$current")
  fi
}}
complete -o default -F _{0} {0}
)",
      app.get_name(), commands, options);
}

}  // namespace

void add_completion_command(CLI::App& app) {
  auto* command = app.add_subcommand("completion", "Print what completes commands in bash");
  command->footer(
      "Example:\n"
      "  source <(attend completion)\n"
      "cmake --install puts it where bash-completion looks.");
  command->callback([&app] { fmt::print("{}", script(app)); });
}

}  // namespace attend
