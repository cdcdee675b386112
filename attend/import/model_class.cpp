#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "attend/base/error.h"
#include "attend/import/model_class-inl.h"

namespace attend::internal {
namespace {

std::string known_types() {
  std::string known;
  for (const ForeignType& row : foreign_types()) known += (known.empty() ? "" : ", ") + row.name;
  return known;
}

bool has_class(const ForeignType& type, const std::string& name) {
  const std::vector<ForeignClass> classes = type.classes();
  return std::any_of(classes.begin(), classes.end(),
                     [&](const ForeignClass& row) { return row.name == name; });
}

// Returns the first type with one of the classes of config.json; null if there is none.
const ForeignType* type_of_class(const JsonPosition& config) {
  if (!config.has("architectures")) return nullptr;
  for (const JsonPosition& name : config.member("architectures").list())
    for (const ForeignType& type : foreign_types())
      if (has_class(type, name.text())) return &type;
  return nullptr;
}

const ForeignType* type_of_tensors(const TensorFile& tensors) {
  for (const ForeignType& type : foreign_types())
    for (const std::string& marker : type.markers)
      if (tensors.tensors.contains(marker)) return &type;
  return nullptr;
}

const ForeignType* type_named(const std::string& name) {
  const auto& table = foreign_types();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const ForeignType& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

// Whether a tensor has that name, with any prefix or none.
bool has_tensor(const TensorFile& tensors, const std::string& name) {
  return std::any_of(tensors.tensors.begin(), tensors.tensors.end(), [&](const auto& item) {
    return item.first == name || item.first.ends_with("." + name);
  });
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the other class requires a tensor that this one lacks.
bool has_more(const ForeignClass& other, const ForeignClass& row) {
  return std::any_of(other.required.begin(), other.required.end(), [&](const std::string& name) {
    return !holds(row.required, name) && !holds(row.others, name);
  });
}

// Returns the class with a head that the tensors contain; the first of equal classes.
std::string class_of_tensors(const JsonPosition& config, const ForeignType& type,
                             const TensorFile& tensors) {
  std::vector<ForeignClass> fitting;
  for (const ForeignClass& row : type.classes()) {
    const bool fits = std::all_of(row.required.begin(), row.required.end(),
                                  [&](const auto& name) { return has_tensor(tensors, name); });
    const bool is_new = std::none_of(fitting.begin(), fitting.end(), [&](const auto& other) {
      return other.kind == row.kind && other.required == row.required;
    });
    if (fits && is_new) fitting.push_back(row);
  }
  const std::vector<ForeignClass> all = fitting;
  std::erase_if(fitting, [&](const ForeignClass& row) {
    return std::any_of(all.begin(), all.end(),
                       [&](const ForeignClass& other) { return has_more(other, row); });
  });
  if (fitting.size() == 1) return fitting[0].name;
  std::vector<std::string> names;
  for (const ForeignClass& row : fitting.empty() ? type.classes() : fitting)
    names.push_back(row.name);
  config.refuse(
      "has no architectures, and its tensors fit {} of {}; write \"architectures\": [..] "
      "with the one that it is",
      fitting.empty() ? "none" : "several", fmt::join(names, ", "));
}

}  // namespace

const ForeignType& find_foreign_type(const std::string& folder, JsonFile& config,
                                     std::optional<TensorFile>& tensors, Notes& notes) {
  const JsonPosition place = config.place();
  const auto read_tensors = [&]() -> const TensorFile& {
    if (!tensors) tensors = read_foreign_tensors(folder);
    return *tensors;
  };
  const std::string named = place.text("model_type", "");
  const ForeignType* type = type_named(named);
  if (type == nullptr) {
    type = type_of_class(place);
    if (type != nullptr && !named.empty() && !holds(type->other_names, named)) type = nullptr;
    if (type == nullptr && !named.empty())
      place.member("model_type")
          .refuse("is {}, which is not read; {} are", in_quotes(named), known_types());
    if (type == nullptr) type = type_of_tensors(read_tensors());
    if (type == nullptr)
      place.refuse(
          "has no model_type, and neither its class nor its tensors say it; write one of {}",
          known_types());
    notes.push_back(fmt::format("{}: read as model_type {}, {}", config.path, in_quotes(type->name),
                                named.empty() ? "which it lacks" : "as its class says"));
    config.json["model_type"] = type->name;
  }
  if (!place.has("architectures")) {
    const std::string name = class_of_tensors(place, *type, read_tensors());
    notes.push_back(fmt::format("{}: read as {}, by its tensors, because it has no architectures",
                                config.path, name));
    config.json["architectures"] = {name};
  }
  return *type;
}

}  // namespace attend::internal
