#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attend/base/enum_names.h"

namespace attend {

// One key of a configuration, bound to the variable that holds its value. The variable's value at
// binding time is the default.
struct Setting {
  std::string key;  // "model.hidden": table, dot, name
  std::variant<int64_t*, double*, bool*, std::string*, NamedVariable> value;
  std::string help = {};
  double minimum = -std::numeric_limits<double>::infinity();  // numbers: inclusive range
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // names: empty allows all; strings: empty allows any
  bool is_file = false;                   // strings: path, relative to the TOML file
  bool is_measured = false;               // numbers: 0 means that the value is taken from the data
};

using Settings = std::vector<Setting>;

void append(Settings& all, Settings more);

// Returns the setting with this key. std::logic_error if there is none.
const Setting& setting_of(const Settings& settings, std::string_view key);

// Assigns the value of one setting to another of the same type.
void take_value(const Setting& to, const Setting& from);

// A TOML file, parsed once. It can be read in parts, because some keys decide which others exist.
class TomlFile {
 public:
  // Error, with file and line, if the file is missing or not valid TOML.
  explicit TomlFile(const std::string& path);
  // Parses a document in memory; messages call it `name`.
  TomlFile(std::string_view document, const std::string& name);
  ~TomlFile();

  // Reads the whole file into the bound variables. Error on an unknown key (with file, line and the
  // nearest key), a wrong type or a value out of range. On Error no variable changes. A relative
  // path in a setting is tried relative to this file first, then to the working directory.
  void read(const Settings& settings) const;

  // Reads one key, if present, and ignores the rest of the file. Errors as in read.
  void read_key(const Setting& setting) const;

 private:
  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
};

// Equivalent to TomlFile(document, name).read(settings).
void parse_toml(const Settings& settings, std::string_view document, const std::string& name);

// Applies one "key=value" of the command line. Strings are taken unchanged, without quotes. A value
// with choices may have blanks around it, here and in files. Errors as in TomlFile::read; the
// message names the assignment.
void assign(const Settings& settings, std::string_view assignment);

// Returns the key of a "key=value" assignment.
std::string_view assigned_key(std::string_view assignment);

// Applies environment variables: ATTEND_MODEL_HIDDEN sets the key model.hidden.
void read_environment(const Settings& settings);

// Error if an environment variable has the prefix of a table of `keys`, such as ATTEND_MODEL_, but
// matches no key. The message suggests the nearest name.
void check_environment(const std::vector<std::string>& keys);

// Error if a variable has a value that its setting does not allow. The message begins with the
// second argument.
void check_values(const Settings& settings, const std::string& where);

// Returns the settings as a TOML document, one table per prefix. With `with_help`, the help
// precedes each key. parse_toml(to_toml(s)) restores s exactly if its strings are UTF-8.
std::string to_toml(const Settings& settings, bool with_help = false);

// Returns the candidate with the smallest edit distance to `word`, or "" if none is similar enough.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attend
