#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/files.h"
#include "attend/cli/commands.h"

namespace attend {
namespace {

// Escapes what roff would read as a request or print as a typographic character. Lines may break
// after commas in lists of names; therefore pages have a ragged right margin.
std::string roff(std::string_view text) {
  constexpr std::string_view special = "\\-'`^~";
  constexpr std::array escapes = {"\\e", "\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti"};
  std::string escaped = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) {
    const size_t i = special.find(c);
    if (i == std::string_view::npos)
      escaped += c;
    else
      escaped += escapes[i];
    if (c == ',') escaped += "\\:";
  }
  return escaped;
}

// "attend data images" becomes "attend-data-images".
std::string page_name(std::string path) {
  std::replace(path.begin(), path.end(), ' ', '-');
  return path;
}

// Lines of a footer in two parts: indented lines after "Example:", and the others.
struct Footer {
  std::string notes, examples;
};

Footer split_footer(const std::string& text) {
  Footer footer;
  std::string* part = &footer.notes;
  bool indented = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool was_indented = indented;
    indented = line.starts_with("  ");
    if (was_indented && !indented) *part += ".RE\n.fi\n.PP\n";
    if (line == "Example:" || line == "Examples:") {
      part = &footer.examples;
      continue;
    }
    if (line.empty() || (was_indented && !indented)) part = &footer.notes;
    if (indented && !was_indented) *part += ".PP\n.nf\n.RS\n";
    *part += line.empty() ? ".PP\n" : roff(line.substr(indented ? 2 : 0)) + '\n';
  }
  if (indented) *part += ".RE\n.fi\n";
  return footer;
}

std::string synopsis(const CLI::App& app, const std::string& path) {
  std::string line = fmt::format("\\fB{}\\fR [\\fIOPTIONS\\fR]", roff(path));
  for (const CLI::Option* each : app.get_options())
    if (each->get_positional())
      line += fmt::format(" \\fI{}\\fR", roff(CLI::Formatter().make_option_usage(each)));
  return line + (visible_commands(app).empty() ? "\n" : " \\fICOMMAND\\fR ...\n");
}

std::string option_list(const CLI::App& app) {
  std::string text;
  for (const bool positional : {true, false})
    for (const CLI::Option* each : app.get_options())
      if (!each->get_group().empty() && each->get_positional() == positional)
        text += fmt::format(
            ".TP\n\\fB{}\\fR{}\n{}\n", roff(each->get_name(positional, !positional)),
            roff(CLI::Formatter().make_option_opts(each)), roff(each->get_description()));
  return text;
}

// The text of --help as a manual page.
std::string manual_page(const CLI::App& app, const std::string& path) {
  const std::string name = roff(page_name(path));
  std::string text = fmt::format(
      ".TH {0} 1 \"\" \"attend {1}\" \"User Commands\"\n.ad l\n.nh\n.SH NAME\n{0} \\- {2}\n.SH "
      "SYNOPSIS\n{3}",
      name, ATTEND_VERSION, roff(app.get_description()), synopsis(app, path));
  const auto section = [&text](const char* heading, const std::string& content) {
    if (!content.empty()) text += fmt::format(".SH {}\n{}", heading, content);
  };
  section("OPTIONS", option_list(app));
  std::string commands;
  for (const CLI::App* each : visible_commands(app))
    commands += fmt::format(".TP\n.BR {} (1)\n{}\n", roff(page_name(path + ' ' + each->get_name())),
                            roff(each->get_description()));
  section("COMMANDS", commands);
  const Footer footer = split_footer(app.get_footer());
  section("NOTES", footer.notes);
  section("EXAMPLES", footer.examples);
  if (app.get_parent() != nullptr)
    section("SEE ALSO",
            fmt::format(".BR {} (1)\n", roff(page_name(path.substr(0, path.rfind(' '))))));
  return text;
}

void write_pages(const CLI::App& app, const std::string& path, const std::string& folder) {
  write_file(fmt::format("{}/{}.1", folder, page_name(path)), manual_page(app, path));
  for (const CLI::App* each : visible_commands(app))
    write_pages(*each, path + ' ' + each->get_name(), folder);
}

}  // namespace

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
}

void add_manual_command(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  auto* command = app.add_subcommand("manual", "Write man pages, one per command");
  command->group("");  // for packagers
  command->add_option("folder", *folder, "folder to write into")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->footer("Example:\n  attend manual share/man/man1");
  command->callback([&app, folder] { write_pages(app, app.get_name(), *folder); });
}

}  // namespace attend
