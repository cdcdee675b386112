#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attend {

// One key of a configuration, bound to the variable that holds its value. The variable's value at
// binding time is the default.
struct Setting {
  std::string key;  // "model.hidden": table, dot, name
  std::variant<int64_t*, double*, bool*, std::string*> value;
  std::string help = {};
  double minimum = -std::numeric_limits<double>::infinity();  // numbers: inclusive range
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // strings: empty allows any
};

using Settings = std::vector<Setting>;

// Reads a TOML file into the bound variables. A key of no setting is an Error that names file, line
// and the nearest key; so are a wrong type, a value out of range and TOML that does not parse. On
// Error no variable has changed.
void read_toml(const Settings& settings, const std::string& path);

// The same for a document in memory; `name` stands for the file in messages.
void parse_toml(const Settings& settings, std::string_view document, const std::string& name);

// Reads one key of a TOML file, if it is there, whatever else the file holds: for a key that
// decides which others there are. Errors as read_toml.
void read_toml_key(const Setting& setting, const std::string& path);

// Applies one "key=value" of the command line; a string is taken as it stands, without quotes.
// Errors as read_toml, naming the assignment.
void assign(const Settings& settings, std::string_view assignment);

// Applies environment variables: key model.hidden reads ATTEND_MODEL_HIDDEN.
void read_environment(const Settings& settings);

// The settings as a TOML document, one table a prefix, each key preceded by its help when
// `with_help`. parse_toml(to_toml(s)) restores s exactly, if its strings are UTF-8.
std::string to_toml(const Settings& settings, bool with_help = false);

// The candidate nearest to `word` by edit distance, or "" when none is near enough to suggest.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attend
