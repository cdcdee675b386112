#include "attend/base/settings.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "attend/base/edit_distance.h"
#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed.h"

namespace attend {
namespace {

using Value = std::variant<int64_t, double, bool, std::string>;

struct Change {
  const Setting* setting;
  Value value;
};

constexpr int64_t maximum_settings = 1 << 20;

// toml++ limits the depth of [[[...]]] but not of a.b.c, and destroys the tables recursively.
constexpr int64_t maximum_dots = 2000;

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

const char* wanted(const Setting& setting) {
  constexpr const char* names[] = {"an integer", "a number", "true or false", "a string",
                                   "a string"};
  return names[setting.value.index()];
}

std::string range_text(const Setting& setting) {
  if (std::isinf(setting.maximum)) return fmt::format("at least {}", setting.minimum);
  if (std::isinf(setting.minimum)) return fmt::format("at most {}", setting.maximum);
  return fmt::format("from {} to {}", setting.minimum, setting.maximum);
}

std::string suggestion(const std::string& word) {
  return word.empty() ? "" : fmt::format("; did you mean {}?", word);
}

// Keys with the last part of `key`, such as model.dropout for train.dropout. If there are none,
// keys that end with it: model.encoder_layers for model.layers.
std::string keys_ending_like(const Settings& settings, std::string_view key) {
  for (const char sign : {'.', '_'}) {
    const std::string end = fmt::format("{}{}", sign, last_part(key));
    std::vector<std::string> keys;
    for (const Setting& setting : settings)
      if (setting.key.ends_with(end)) keys.push_back(setting.key);
    if (!keys.empty()) return fmt::format("{}", fmt::join(keys, " or "));
  }
  return "";
}

// A key may also be written under a wrong table or under none; then its last part is compared.
std::string nearest_key(const Settings& settings, std::string_view key) {
  if (std::string like = keys_ending_like(settings, key); !like.empty()) return like;
  std::vector<std::string> keys, parts;
  for (const Setting& setting : settings) {
    keys.push_back(setting.key);
    parts.emplace_back(last_part(setting.key));
  }
  std::string found = nearest(key, keys);
  if (!found.empty()) return found;
  found = nearest(last_part(key), parts);
  const auto part = std::find(parts.begin(), parts.end(), found);
  return part == parts.end() ? "" : keys[static_cast<size_t>(part - parts.begin())];
}

const Setting* with_key(const Settings& settings, std::string_view key) {
  for (const Setting& setting : settings)
    if (setting.key == key) return &setting;
  return nullptr;
}

const Setting& find_setting(const Settings& settings, std::string_view key,
                            const std::string& where) {
  if (const Setting* found = with_key(settings, key)) return *found;
  for (const Setting& setting : settings) {
    if (setting.key.size() > key.size() && setting.key.starts_with(key) &&
        setting.key[key.size()] == '.') {
      fail("{}: {} is a table of settings, such as {}", where, in_quotes(key), setting.key);
    }
  }
  fail("{}: unknown key {}{}", where, in_quotes(key), suggestion(nearest_key(settings, key)));
}

template <class Number>
void check_range(const Setting& setting, Number value, const std::string& where) {
  const auto number = static_cast<double>(value);
  // Written this way, a NaN fails.
  if (number >= setting.minimum && number <= setting.maximum) return;
  fail("{}: {} is {}; it must be {}", where, setting.key, value,
       std::isnan(number) ? "a number" : range_text(setting));
}

// Longer lists would hide the message; the help lists the choices.
constexpr size_t longest_list = 16;

std::string listed(std::vector<std::string> choices) {
  std::replace(choices.begin(), choices.end(), std::string(), std::string("\"\""));
  return fmt::format("{}", fmt::join(choices, ", "));
}

// Allowed values; empty allows any.
const std::vector<std::string>& choices_of(const Setting& setting) {
  const auto* named = std::get_if<NamedVariable>(&setting.value);
  return named && setting.choices.empty() ? named->names() : setting.choices;
}

// Returns whether a value matches a choice. "hit@K" matches with any positive integer for K.
bool is_choice(const std::string& value, const std::string& choice) {
  if (value == choice) return true;
  const size_t before_number = choice.size() - 1;
  if (!choice.ends_with("@K") || value.size() < choice.size() ||
      value.compare(0, before_number, choice, 0, before_number) != 0)
    return false;
  const auto number = parse_number<int64_t>(std::string_view(value).substr(before_number));
  return number && *number > 0;
}

void check_choice(const Setting& setting, const std::string& value, const std::string& where) {
  const auto& choices = choices_of(setting);
  const auto fits = [&](const std::string& choice) { return is_choice(value, choice); };
  if (choices.empty() || std::any_of(choices.begin(), choices.end(), fits)) return;
  const std::string all = choices.size() > longest_list
                              ? fmt::format("{} names: {}", choices.size(), setting.help)
                              : listed(choices);
  fail("{}: {} is {}; it must be one of {}{}", where, setting.key, in_quotes(value), all,
       suggestion(nearest(value, choices)));
}

void check(const Change& change, const std::string& where) {
  std::visit(
      [&](const auto& value) {
        using Type = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, std::string>) {
          check_choice(*change.setting, value, where);
        } else if constexpr (!std::is_same_v<Type, bool>) {
          check_range(*change.setting, value, where);
        }
      },
      change.value);
}

// Environment variable that sets a key.
std::string variable_of(std::string_view key) {
  std::string name = "ATTEND_";
  for (const char c : key)
    name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

void apply(const Change& change) {
  std::visit(
      [&](const auto& variable) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(variable)>>)
          *variable = std::get<std::decay_t<decltype(*variable)>>(change.value);
        else
          variable.set(std::get<std::string>(change.value));
      },
      change.setting->value);
}

Value text_value(const Setting& setting, std::string_view text) {
  return std::string(choices_of(setting).empty() ? text : trimmed(text));
}

std::optional<Value> parse_text(const Setting& setting, std::string_view text) {
  const std::string_view word = trimmed(text);
  switch (setting.value.index()) {
    case 0:
      return parse_number<int64_t>(word);
    case 1:
      return parse_number<double>(word);
    case 2:
      if (word == "true") return Value(true);
      if (word == "false") return Value(false);
      return std::nullopt;
    default:
      return text_value(setting, text);
  }
}

void apply_text(const Setting& setting, std::string_view text, const std::string& where) {
  const std::optional<Value> value = parse_text(setting, text);
  if (!value)
    fail("{}: {} must be {}, not {}", where, setting.key, wanted(setting), in_quotes(text));
  const Change change{&setting, *value};
  check(change, where);
  apply(change);
}

std::optional<Value> convert(const Setting& setting, const toml::node& node) {
  switch (setting.value.index()) {
    case 0:
      if (const auto* integer = node.as_integer()) return Value(integer->get());
      break;
    case 1:
      if (const auto* number = node.as_floating_point()) return Value(number->get());
      if (const auto* integer = node.as_integer()) {
        return Value(static_cast<double>(integer->get()));
      }
      break;
    case 2:
      if (const auto* flag = node.as_boolean()) return Value(flag->get());
      break;
    default:
      if (const auto* text = node.as_string()) return text_value(setting, text->get());
  }
  return std::nullopt;
}

std::string describe(const toml::node& node) {
  if (const auto* text = node.as_string()) return "the string " + in_quotes(text->get());
  if (const auto* integer = node.as_integer()) return fmt::format("the integer {}", integer->get());
  if (const auto* number = node.as_floating_point()) {
    return fmt::format("the number {}", number->get());
  }
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return node.is_table() ? "a table" : node.is_array() ? "an array" : "a date or time";
}

Change read_node(const Setting& setting, const toml::node& node, const std::string& where) {
  const std::optional<Value> value = convert(setting, node);
  if (!value)
    fail("{}: {} must be {}, not {}", where, setting.key, wanted(setting), describe(node));
  Change change{&setting, *value};
  check(change, where);
  return change;
}

// Paths in a settings file are relative to it, which allows moving both together.
void resolve_file(const std::filesystem::path& folder, Change& change) {
  if (!change.setting->is_file || folder.empty()) return;
  auto& name = std::get<std::string>(change.value);
  std::error_code ignored;
  const std::filesystem::path resolved = folder / name;  // `name` itself if it is absolute
  if (!name.empty() && std::filesystem::exists(resolved, ignored)) name = resolved.string();
}

// A key part with a dot is shown in quotes, and hence equals no setting's key.
std::string join_key(const std::string& prefix, std::string_view name) {
  const bool plain = name.find('.') == std::string_view::npos && !name.empty();
  const std::string part = plain ? std::string(name) : fmt::format("\"{}\"", name);
  return prefix.empty() ? part : prefix + "." + part;
}

std::vector<Change> collect(const Settings& settings, const toml::table& root,
                            const std::string& name) {
  std::vector<Change> changes;
  // An explicit stack, because the file determines the depth of the tables.
  std::vector<std::pair<std::string, const toml::table*>> open{{"", &root}};
  while (!open.empty()) {
    const auto [prefix, table] = std::move(open.back());
    open.pop_back();
    for (const auto& [toml_key, node] : *table) {
      const std::string key = join_key(prefix, toml_key.str());
      // No key of ours is that long: everything below would be unknown, too.
      if (node.is_table() && with_key(settings, key) == nullptr && key.size() < 200) {
        open.emplace_back(key, node.as_table());
        continue;
      }
      const std::string where = fmt::format("{}:{}", name, toml_key.source().begin.line);
      const Setting& setting = find_setting(settings, key, where);
      changes.push_back(read_node(setting, node, where));
    }
  }
  return changes;
}

std::string toml_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\u{:04X}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string toml_number(double value) {
  std::string text = fmt::format("{}", value);
  // TOML distinguishes a float from an integer by its point or exponent.
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";
  return text;
}

std::string toml_value(const Setting& setting) {
  return std::visit(
      [](const auto& variable) -> std::string {
        if constexpr (!std::is_pointer_v<std::decay_t<decltype(variable)>>) {
          return toml_string(variable.name());
        } else {
          using Type = std::decay_t<decltype(*variable)>;
          if constexpr (std::is_same_v<Type, std::string>) return toml_string(*variable);
          if constexpr (std::is_same_v<Type, double>) return toml_number(*variable);
          if constexpr (std::is_same_v<Type, bool>) return *variable ? "true" : "false";
          if constexpr (std::is_same_v<Type, int64_t>) return fmt::format("{}", *variable);
        }
      },
      setting.value);
}

std::string help_lines(const Setting& setting) {
  std::string text = setting.help;
  if (const auto& choices = choices_of(setting); !choices.empty()) {
    text += fmt::format(" (one of {})", listed(choices));
  } else if (!std::isinf(setting.minimum) || !std::isinf(setting.maximum)) {
    text += fmt::format(" ({})", range_text(setting));
  }
  std::string result = text.empty() ? "" : "# ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "# ";
  }
  return result.empty() ? result : result + "\n";
}

// toml++ quotes the document in its messages, including line breaks.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 300));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return line;
}

toml::table parse_document(std::string_view document, const std::string& name) {
  if (std::count(document.begin(), document.end(), '.') > maximum_dots) {
    fail("{}: has over {} dots, so it is not a settings file", name, maximum_dots);
  }
  try {
    return toml::parse(document);
  } catch (const toml::parse_error& error) {
    const auto& place = error.source().begin;
    fail("{}:{}:{}: not valid TOML: {}", name, place.line, place.column,
         one_line(error.description()));
  }
}

}  // namespace

void append(Settings& all, Settings more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

const Setting& setting_of(const Settings& settings, std::string_view key) {
  if (const Setting* found = with_key(settings, key)) return *found;
  throw std::logic_error(fmt::format("no setting has the key {}", key));
}

void take_value(const Setting& to, const Setting& from) {
  std::visit(
      [&](const auto& variable) {
        const auto& other = std::get<std::decay_t<decltype(variable)>>(from.value);
        if constexpr (requires { variable.set(other.name()); })
          variable.set(other.name());
        else
          *variable = *other;
      },
      to.value);
}

struct TomlFile::Parsed {
  std::string name;
  toml::table root;
  std::filesystem::path folder = {};  // empty: in memory or the working directory
};

TomlFile::TomlFile(std::string_view document, const std::string& name)
    : parsed_(new Parsed{name, parse_document(document, name)}) {}

TomlFile::TomlFile(const std::string& path)
    : parsed_(new Parsed{path, parse_document(read_file(path, maximum_settings), path),
                         std::filesystem::path(path).parent_path()}) {}

TomlFile::~TomlFile() = default;

void TomlFile::read(const Settings& settings) const {
  for (Change& change : collect(settings, parsed_->root, parsed_->name)) {
    resolve_file(parsed_->folder, change);
    apply(change);
  }
}

void TomlFile::read_key(const Setting& setting) const {
  const toml::node* node = parsed_->root.at_path(setting.key).node();
  if (node == nullptr) return;
  Change change =
      read_node(setting, *node, fmt::format("{}:{}", parsed_->name, node->source().begin.line));
  resolve_file(parsed_->folder, change);
  apply(change);
}

void parse_toml(const Settings& settings, std::string_view document, const std::string& name) {
  TomlFile(document, name).read(settings);
}

std::string_view assigned_key(std::string_view assignment) {
  return trimmed(assignment.substr(0, assignment.find('=')));
}

void assign(const Settings& settings, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    fail("{}: a setting is given as key=value", in_quotes(assignment));
  }
  const std::string where = in_quotes(assignment);
  const Setting& setting = find_setting(settings, assigned_key(assignment), where);
  apply_text(setting, assignment.substr(equals + 1), where);
}

void read_environment(const Settings& settings) {
  for (const Setting& setting : settings) {
    const std::string name = variable_of(setting.key);
    const char* text = std::getenv(name.c_str());
    if (text != nullptr) apply_text(setting, text, "environment variable " + name);
  }
}

void check_environment(const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  std::set<std::string> tables;
  for (const std::string& key : keys) {
    names.push_back(variable_of(key));
    if (const size_t dot = key.find('.'); dot != std::string::npos)
      tables.insert(variable_of(key.substr(0, dot + 1)));
  }
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry = *each, name = entry.substr(0, entry.find('='));
    const bool begins = std::any_of(tables.begin(), tables.end(),
                                    [&](const auto& table) { return name.starts_with(table); });
    if (begins && std::find(names.begin(), names.end(), name) == names.end())
      fail("environment variable {} sets nothing{}", in_quotes(name),
           suggestion(nearest(name, names)));
  }
}

void check_values(const Settings& settings, const std::string& where) {
  for (const Setting& setting : settings)
    std::visit(
        [&](const auto& variable) {
          if constexpr (std::is_pointer_v<std::decay_t<decltype(variable)>>)
            check({&setting, *variable}, where);
          else
            check_choice(setting, variable.name(), where);
        },
        setting.value);
}

std::string to_toml(const Settings& settings, bool with_help) {
  // TOML opens each table once. Keys before the first table belong to no table.
  std::vector<std::string> tables{""};
  std::map<std::string, std::string> bodies;
  for (const Setting& setting : settings) {
    const size_t dot = setting.key.rfind('.');
    const std::string table = dot == std::string::npos ? "" : setting.key.substr(0, dot);
    if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
    bodies[table] += (with_help ? help_lines(setting) : "") +
                     fmt::format("{} = {}\n", last_part(setting.key), toml_value(setting));
  }
  std::string document;
  for (const std::string& table : tables) {
    if (!document.empty()) document += '\n';
    if (!table.empty()) document += fmt::format("[{}]\n", table);
    document += bodies[table];
  }
  return document;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t longest = 100;
  std::string best;
  if (word.size() > longest) return best;
  // A unique completion is as good as a misspelling.
  const auto begins = [&](const std::string& candidate) { return candidate.starts_with(word); };
  if (const auto longer = std::find_if(candidates.begin(), candidates.end(), begins);
      word.size() > 2 && longer != candidates.end() &&
      std::count_if(candidates.begin(), candidates.end(), begins) == 1)
    return *longer;
  // Up to a third of the letters may differ, but never all.
  size_t best_distance = std::min(std::max<size_t>(word.size() / 3, 2), word.size());
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest) continue;
    const auto distance =
        static_cast<size_t>(edit_distance(word, std::string_view(candidate), /*swaps=*/true));
    if (distance <= best_distance && distance < word.size() && distance < candidate.size() &&
        (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace attend
