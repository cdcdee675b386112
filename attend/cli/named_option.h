#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "attend/base/enum_names.h"

namespace attend {

// An option that takes a name of an enum's values. Its default is the variable's value, or none
// where that is a std::optional.
template <NamedEnum E, class Variable>
CLI::Option* add_named_option(CLI::App& command, const std::string& name, Variable& variable,
                              const std::string& help) {
  CLI::Option* option = command.add_option_function<std::string>(
      name, [&variable](const std::string& text) { variable = value_of<E>(text, "value"); }, help);
  if constexpr (NamedEnum<Variable>) option->default_str(name_of(variable));
  return option->check(CLI::IsMember(names_of(E{})));
}

}  // namespace attend
