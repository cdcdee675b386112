#include "attend/cli/setting_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

namespace attend {
namespace {

std::string option_name(const std::string& key) {
  std::string name = "--" + key.substr(key.find('.') + 1);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Shows the type and default of a setting in the help.
struct ShownSetting {
  CLI::Option* option;

  void operator()(const int64_t* number) const {
    option->type_name("INT")->default_str(fmt::format("{}", *number));
  }
  void operator()(const double* number) const {
    option->type_name("FLOAT")->default_str(fmt::format("{}", *number));
  }
  void operator()(const std::string* text) const { option->type_name("TEXT")->default_str(*text); }
  void operator()(const NamedVariable& variable) const {
    option->type_name(fmt::format("{{{}}}", fmt::join(variable.names(), ",")))
        ->default_str(variable.name());
  }
  void operator()(const bool*) const {}
};

}  // namespace

CLI::Option* add_setting_option(CLI::App& command, const Setting& setting,
                                const std::string& help) {
  const std::string name = option_name(setting.key);
  if (bool* const* flag = std::get_if<bool*>(&setting.value))
    return command.add_flag(name, **flag, help);
  if (double* const* number = std::get_if<double*>(&setting.value))
    return command.add_option(name, **number, help)
        ->check(CLI::Range(setting.minimum, setting.maximum));
  return command.add_option(name, *std::get<int64_t*>(setting.value), help)
      ->check(
          CLI::Range(static_cast<int64_t>(setting.minimum), static_cast<int64_t>(setting.maximum)));
}

void add_setting_options(CLI::App& command, const Settings& settings,
                         std::vector<std::string>& assignments) {
  for (const Setting& setting : settings) {
    const std::string name = option_name(setting.key);
    if (std::holds_alternative<bool*>(setting.value)) {
      command.add_flag_callback(
          name, [key = setting.key, &assignments] { assignments.push_back(key + "=true"); },
          setting.help);
      continue;
    }
    CLI::Option* option = command.add_option_function<std::string>(
        name,
        [key = setting.key, &assignments](const std::string& value) {
          assignments.push_back(fmt::format("{}={}", key, value));
        },
        setting.help);
    std::visit(ShownSetting{option}, setting.value);
  }
}

}  // namespace attend
