#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attend/base/find_row.h"

namespace attend {

// Names of an enum's values, in order. The values count from 0.
using EnumNames = std::vector<std::string>;

// An enum with names: a function EnumNames names_of(E) in its namespace, which ignores its
// argument.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { names_of(value) } -> std::same_as<EnumNames>;
};

template <NamedEnum E>
std::string name_of(E value) {
  return names_of(value)[static_cast<size_t>(value)];
}

// Returns the value with that name. Error if there is none. `kind` names the values in the message,
// e.g. "normal form".
template <NamedEnum E>
E value_of(std::string_view name, std::string_view kind) {
  const EnumNames names = names_of(E{});
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<E>(i);
  fail_unknown(kind, name, names);
}

// Reads and sets a variable of any named enum by name.
class NamedVariable {
 public:
  template <NamedEnum E>
  NamedVariable(E* variable)  // NOLINT(google-explicit-constructor): a Setting takes a pointer
      : names_(names_of(E{})),
        name_([variable] { return name_of(*variable); }),
        set_([variable](std::string_view name) { *variable = value_of<E>(name, "value"); }) {}

  const EnumNames& names() const { return names_; }
  std::string name() const { return name_(); }
  void set(std::string_view name) const { set_(name); }  // Error if no value has that name

 private:
  EnumNames names_;
  std::function<std::string()> name_;
  std::function<void(std::string_view)> set_;
};

}  // namespace attend
