#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "attend/base/enum_names.h"

namespace attend {

// Option for a named enum value. Its default is the value of the variable; a std::optional has no
// default.
template <NamedEnum E, class Variable>
CLI::Option* add_named_option(CLI::App& command, const std::string& name, Variable& variable,
                              const std::string& help) {
  CLI::Option* option = command.add_option_function<std::string>(
      name, [&variable](const std::string& text) { variable = value_of<E>(text, "value"); }, help);
  if constexpr (NamedEnum<Variable>) option->default_str(name_of(variable));
  return option->check(CLI::IsMember(names_of(E{})));
}

}  // namespace attend
