#include "attend/text/json_lines.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/text/lines.h"
#include "attend/tokenizers/json.h"

namespace attend {
namespace {

std::string names_of_members(const Json& object) {
  std::vector<std::string> names;
  names.reserve(object.size());
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return in_quotes(fmt::format("{}", fmt::join(names, ", ")));
}

std::string member_of(const Json& object, const std::string& name, const std::string& where) {
  const auto found = object.find(name);
  if (found == object.end())
    fail("{}: has no member {}; there are {}", where, in_quotes(name), names_of_members(object));
  if (found->is_string()) return internal::joined_line(found->get_ref<const std::string&>());
  if (!found->is_number() && !found->is_boolean())
    fail("{}: {} is {}; a string, a number or a boolean is wanted", where, in_quotes(name),
         found->is_null()    ? "null"
         : found->is_array() ? "an array"
                             : "an object");
  return found->dump();
}

// Returns the remedy for a line that is not JSON from `rest` on.
std::string_view remedy_of(std::string_view rest) {
  if (rest.starts_with('\'')) return "names and texts need double quotes";
  if (rest.starts_with("NaN") || rest.starts_with("Infinity"))
    return "NaN and Infinity are not numbers of JSON; leave such lines out";
  return "mend the line";
}

Json object_of(std::string_view line, const std::string& where) {
  const std::string_view text = line.substr(line.find_first_not_of(" \t"));
  if (!text.starts_with('{') || text.find('}') == text.npos)
    fail(
        "{}: is not an object; each line must be a whole one, such as {} (jq -c '.[]' writes an "
        "array of JSON so)",
        where, R"({"text": "a", "label": "b"})");
  return parse_json(text, where, remedy_of);
}

bool is_blank_line(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

bool has_objects(ByteReader bytes, int64_t maximum_line) {
  internal::Lines lines(std::move(bytes), maximum_line);
  for (std::string_view line; lines.next(line);)
    if (!is_blank_line(line)) return true;
  return false;
}

}  // namespace

struct JsonLinesReader::State {
  State(ByteReader bytes, int64_t maximum_line) : lines(std::move(bytes), maximum_line) {}

  internal::Lines lines;
};

JsonLinesReader::JsonLinesReader(ByteReader bytes, const std::string& source_column,
                                 std::string target_column, int64_t maximum_line)
    : target_(std::move(target_column)) {
  const std::string name = bytes.name();
  if (source_column.empty() || target_.empty()) {
    if (!has_objects(std::move(bytes), maximum_line))
      fail("{}: is empty; an object for each line is wanted", name);
    fail("{}: name two members of its objects with --source-column and --target-column", name);
  }
  sources_ = source_columns(source_column, target_, name);
  state_ = std::make_unique<State>(std::move(bytes), maximum_line);
}

JsonLinesReader::~JsonLinesReader() = default;

bool JsonLinesReader::next(std::string& source, std::string& target) {
  std::string_view line;
  do {
    if (!state_->lines.next(line)) return false;
  } while (is_blank_line(line));
  const Json object = object_of(line, where());
  std::vector<std::string> texts;
  texts.reserve(sources_.size());
  for (const std::string& name : sources_) texts.push_back(member_of(object, name, where()));
  source = fmt::format("{}", fmt::join(texts, "\t"));
  target = member_of(object, target_, where());
  return true;
}

std::string JsonLinesReader::where() const { return state_->lines.where(); }

std::vector<std::string> JsonLinesReader::columns() const {
  return {fmt::format("{}", fmt::join(sources_, ", ")), target_};
}

int64_t JsonLinesReader::line() const { return state_->lines.number(); }

}  // namespace attend
