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
  bool is_file = false;                   // strings: a TOML file may name a file beside it
  bool is_measured = false;               // numbers: 0 asks for what the data have
};

using Settings = std::vector<Setting>;

void append(Settings& all, Settings more);

// A TOML file, parsed once. Some keys decide which others there are, so that it is read in parts.
class TomlFile {
 public:
  // Error, naming file and line, where there is no such file or it is no TOML.
  explicit TomlFile(const std::string& path);
  // The same for a document in memory; messages call it `name`.
  TomlFile(std::string_view document, const std::string& name);
  ~TomlFile();

  // Reads all of it into the bound variables. A key of no setting is an Error that names file, line
  // and the nearest key; so are a wrong type and a value out of range. On Error no variable has
  // changed. A file that a setting names is looked for beside this one, then where it says.
  void read(const Settings& settings) const;

  // Reads one key, if it is there, whatever else the file holds. Errors as read.
  void read_key(const Setting& setting) const;

 private:
  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
};

// TomlFile(document, name).read(settings)
void parse_toml(const Settings& settings, std::string_view document, const std::string& name);

// Applies one "key=value" of the command line; a string is taken unchanged, without quotes. Where
// there are choices, blanks around one do not matter, here and in files. Errors as TomlFile::read,
// naming the assignment.
void assign(const Settings& settings, std::string_view assignment);

// The key of such an assignment.
std::string_view assigned_key(std::string_view assignment);

// Applies environment variables: key model.hidden reads ATTEND_MODEL_HIDDEN.
void read_environment(const Settings& settings);

// Error, suggesting the nearest name, on an environment variable that has the prefix of a table of
// the keys, such as ATTEND_MODEL_, and sets none of the keys.
void check_environment(const std::vector<std::string>& keys);

// Error, behind `where`, on a variable whose value its setting does not allow.
void check_values(const Settings& settings, const std::string& where);

// The settings as a TOML document, one table per prefix, each key preceded by its help when
// `with_help`. parse_toml(to_toml(s)) restores s exactly, if its strings are UTF-8.
std::string to_toml(const Settings& settings, bool with_help = false);

// The candidate nearest to `word` by edit distance, or "" when none is near enough to suggest.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attend
