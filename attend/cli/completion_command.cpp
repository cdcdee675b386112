#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/cli/commands.h"
#include "attend/cli/named_option.h"

namespace attend {
namespace {

enum class Shell { bash, zsh };
EnumNames names_of(Shell) { return {"bash", "zsh"}; }

struct Word {
  std::string name, meaning;
};

// Possible words after a command: its subcommands and options.
struct Words {
  std::string path;  // "attend data images"
  std::vector<Word> commands, options;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Words>& all) {
  Words words{path, {}, {}};
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      words.options.push_back({"--" + name, option->get_description()});
  const auto subcommands = visible_commands(app);
  for (const CLI::App* each : subcommands)
    words.commands.push_back({each->get_name(), each->get_description()});
  all.push_back(std::move(words));
  for (const CLI::App* each : subcommands) collect(*each, path + ' ' + each->get_name(), all);
}

std::string name_list(const std::vector<Word>& words) {
  std::vector<std::string> all;
  all.reserve(words.size());
  for (const Word& word : words) all.push_back(word.name);
  return fmt::format("{}", fmt::join(all, " "));
}

std::string bash_script(const std::string& program, const std::vector<Words>& all) {
  std::string commands, options;
  for (const Words& words : all) {
    commands += fmt::format("    [\"{}\"]=\"{}\"\n", words.path, name_list(words.commands));
    options += fmt::format("    [\"{}\"]=\"{}\"\n", words.path, name_list(words.options));
  }
  return fmt::format(
      R"(# Completion of {0} for bash: source this file, or put it into the folder of bash-completion.
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
      program, commands, options);
}

// Words with descriptions, in the format of zsh's _describe.
std::string described(const std::vector<Word>& words) {
  std::string text;
  for (const Word& word : words) {
    std::string meaning;
    for (const char c : word.meaning) meaning += c == '\'' ? "'\\''" : std::string(1, c);
    text += fmt::format("\n        '{}:{}'", word.name, meaning);
  }
  return text;
}

std::string zsh_script(const std::string& program, const std::vector<Words>& all) {
  std::string paths, cases;
  for (const Words& words : all) {
    paths += fmt::format(" '{}'", words.path);
    cases += fmt::format("    '{}')\n      subcommands=({})\n      flags=({})\n      ;;\n",
                         words.path, described(words.commands), described(words.options));
  }
  return fmt::format(
      R"(#compdef {0}
# Completion of {0} for zsh: put this file as _{0} into a folder of fpath.
_{0}() {{
  local -a paths subcommands flags
  local called={0} word
  paths=({1})
  for word in ${{words[2,CURRENT-1]}}; do
    (( ! ${{paths[(Ie)$called $word]}} )) || called="$called $word"
  done
  case $called in
{2}  esac
  if [[ ${{words[CURRENT]}} == -* ]]; then
    _describe -o option flags
  elif (( ${{#subcommands}} )); then
    _describe command subcommands
  else
    _files
  fi
}}
if [[ ${{funcstack[1]}} == _{0} ]]; then
  _{0}
else
  compdef _{0} {0}
fi
)",
      program, paths, cases);
}

}  // namespace

void add_completion_command(CLI::App& app) {
  auto shell = std::make_shared<Shell>(Shell::bash);
  auto* command = app.add_subcommand("completion", "Print a completion script for a shell");
  add_named_option<Shell>(*command, "--shell", *shell, "bash or zsh")->type_name("NAME");
  command->footer(
      "Examples:\n"
      "  source <(attend completion)\n"
      "  source <(attend completion --shell zsh)\n"
      "cmake --install puts both into the folders that the shells search.");
  command->callback([&app, shell] {
    std::vector<Words> all;
    collect(app, app.get_name(), all);
    fmt::print("{}", *shell == Shell::zsh ? zsh_script(app.get_name(), all)
                                          : bash_script(app.get_name(), all));
  });
}

}  // namespace attend
