#include "attend/serve/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "attend/base/settings.h"

namespace attend {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_field(const std::string& name, const std::string& problem) {
  throw RequestError(422, fmt::format("{} {}", name, problem), name, "invalid_value");
}

json parse_body(std::string_view body) {
  // The parser keeps what it skips until something follows.
  body = body.substr(0, body.find_last_not_of(" \t\r\n") + 1);
  size_t values = 0;
  std::set<std::string> names;
  const auto count = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key) {
      if (depth == 1 && !names.insert(parsed.get<std::string>()).second)
        throw RequestError(422,
                           fmt::format("the field {} is there twice; give it once",
                                       in_quotes(parsed.get<std::string>())),
                           parsed.get<std::string>(), "invalid_value");
      return true;
    }
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= json_depth)
      throw RequestError(422,
                         fmt::format("JSON may be nested {} deep; this is deeper", json_depth));
    if ((opens || event == json::parse_event_t::value) && ++values > json_values)
      throw RequestError(422, fmt::format("JSON may hold {} values; this holds more", json_values));
    return true;
  };
  try {
    return json::parse(body, count);
  } catch (const json::parse_error& error) {
    throw RequestError(400, fmt::format("the body is no JSON, byte {}", error.byte));
  } catch (const json::exception&) {
    throw RequestError(400, "the body is no JSON: a number is too large");
  }
}

void check_range(const RequestField& field, double value, std::string_view shown) {
  if (value >= field.minimum && value <= field.maximum) return;
  refuse_field(field.name,
               fmt::format("is {}; it must be from {} to {}", shown, field.minimum, field.maximum));
}

// Reads a value into a variable of any of the types.
struct FieldReader {
  const RequestField& field;
  const json& value;

  void expect(bool is_right, std::string_view type) const {
    if (!is_right)
      refuse_field(field.name, fmt::format("is {}; it must be {}", value.type_name(), type));
  }

  void operator()(int64_t* number) const {
    expect(value.is_number_integer(), "a whole number");
    check_range(field, value.get<double>(), value.dump());
    *number = value.get<int64_t>();
  }
  void operator()(double* number) const {
    expect(value.is_number(), "a number");
    check_range(field, value.get<double>(), value.dump());
    *number = value.get<double>();
  }
  void operator()(bool* flag) const {
    expect(value.is_boolean(), "true or false");
    *flag = value.get<bool>();
  }
  void operator()(std::string* text) const {
    expect(value.is_string(), "a string");
    *text = value.get<std::string>();
  }
  void operator()(std::vector<std::string>* texts) const {
    expect(value.is_array() && std::all_of(value.begin(), value.end(),
                                           [](const json& one) { return one.is_string(); }),
           "an array of strings");
    const size_t count = value.size();
    check_range(field, static_cast<double>(count), fmt::format("{} strings", count));
    *texts = value.get<std::vector<std::string>>();
  }
  void operator()(const NamedVariable& variable) const {
    expect(value.is_string(), "a string");
    const auto& names = variable.names();
    const auto name = value.get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end())
      refuse_field(field.name, fmt::format("is {}; it must be one of {}", in_quotes(name),
                                           fmt::join(names, ", ")));
    variable.set(name);
  }
};

}  // namespace

HttpResponse full_response(ErrorForm error) {
  HttpResponse response =
      error(RequestError(429, "too many requests wait for an answer; ask later", "", "queue_full"));
  response.fields = {{"Retry-After", "1"}};
  return response;
}

std::set<std::string> read_request(std::string_view body, const std::vector<RequestField>& fields) {
  const json object = parse_body(body);
  if (!object.is_object()) throw RequestError(422, "the body must be one JSON object");
  std::vector<std::string> names;
  for (const RequestField& field : fields) names.push_back(field.name);
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string meant = nearest(name, names);
    throw RequestError(
        422,
        fmt::format("there is no field {}; {}", in_quotes(name),
                    meant.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                  : fmt::format("did you mean {}?", meant)),
        name, "unknown_field");
  }
  std::set<std::string> present;
  for (const RequestField& field : fields) {
    const auto found = object.find(field.name);
    if (found != object.end()) {
      std::visit(FieldReader{field, *found}, field.value);
      present.insert(field.name);
    } else if (field.is_required) {
      refuse_field(field.name, "is missing");
    }
  }
  return present;
}

}  // namespace attend
