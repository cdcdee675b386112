#include "attend/serve/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <cmath>
#include <limits>
#include <locale>
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
  // The parser buffers skipped white space until something follows.
  body = body.substr(0, body.find_last_not_of(" \t\r\n") + 1);
  size_t values = 0;
  std::set<std::string> names;
  const auto count = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key) {
      if (depth == 1 && !names.insert(parsed.get<std::string>()).second)
        throw RequestError(422,
                           fmt::format("the field {} is given twice; give it once",
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
    throw RequestError(400, fmt::format("the body is not JSON, byte {}", error.byte));
  } catch (const json::exception&) {
    throw RequestError(400, "the body is not JSON: a number is too large");
  }
}

struct InputFormRow {
  InputForm form;
  const char* name;
  bool (*fits)(const json& value);
  void (*take)(const json& value, RequestInputs& inputs);  // requires fits(value)
  json (*schema)(const RequestField& field);
};

bool is_id(const json& value) {
  return value.is_number_integer() && value.get<double>() >= 0 &&
         value.get<double>() <= max_token_id;
}

bool is_text(const json& value) { return value.is_string(); }

template <bool (*fits)(const json&)>
bool is_row(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), fits);
}

bool has_ids(const json& value) { return !value.empty() && is_row<is_id>(value); }

bool has_one_text(const json& value) { return value.size() == 1 && is_row<is_text>(value); }

void take_texts(const json& value, RequestInputs& inputs) {
  inputs.texts = value.get<std::vector<std::string>>();
}

void take_text_rows(const json& value, RequestInputs& inputs) {
  for (const json& row : value) inputs.texts.push_back(row[0].get<std::string>());
}

bool has_text(const json& value) {
  return value.is_object() && value.size() == 1 && value.contains("text") && is_text(value["text"]);
}

void take_text_objects(const json& value, RequestInputs& inputs) {
  for (const json& object : value) inputs.texts.push_back(object["text"].get<std::string>());
}

bool is_question(const json& value) {
  return value.is_object() && value.size() == 2 && value.contains("question") &&
         is_text(value["question"]) && value.contains("context") && is_text(value["context"]);
}

void take_question(const json& value, RequestInputs& inputs) {
  inputs.texts = {
      pair_source(value["question"].get<std::string>(), value["context"].get<std::string>())};
}

void take_id_rows(const json& value, RequestInputs& inputs) {
  inputs.ids = value.get<std::vector<std::vector<int64_t>>>();
}

// Array with the field's limits of size.
json array_schema(const RequestField& field, const json& items) {
  return {{"type", "array"},
          {"items", items},
          {"minItems", static_cast<int64_t>(field.minimum)},
          {"maxItems", static_cast<int64_t>(field.maximum)}};
}

json text_schema() { return {{"type", "string"}}; }

json one_text_schema() {
  return {{"type", "array"}, {"items", text_schema()}, {"minItems", 1}, {"maxItems", 1}};
}

json text_object_schema() {
  return {{"type", "object"},
          {"properties", {{"text", text_schema()}}},
          {"required", {"text"}},
          {"additionalProperties", false}};
}

json question_schema() {
  return {{"type", "object"},
          {"properties", {{"question", text_schema()}, {"context", text_schema()}}},
          {"required", {"question", "context"}},
          {"additionalProperties", false}};
}

json ids_schema() {
  return {{"type", "array"},
          {"items",
           {{"type", "integer"},
            {"format", "int64"},
            {"minimum", 0},
            {"maximum", static_cast<int64_t>(max_token_id)}}},
          {"minItems", 1}};
}

const std::vector<InputFormRow>& input_forms() {
  static const std::vector<InputFormRow> table = {
      {InputForm::text, "a string", is_text,
       [](const json& value, RequestInputs& inputs) { inputs.texts = {value.get<std::string>()}; },
       [](const RequestField&) { return text_schema(); }},
      {InputForm::texts, "an array of strings", is_row<is_text>, take_texts,
       [](const RequestField& field) { return array_schema(field, text_schema()); }},
      {InputForm::text_rows, "an array of arrays of one string", is_row<has_one_text>,
       take_text_rows,
       [](const RequestField& field) { return array_schema(field, one_text_schema()); }},
      {InputForm::text_objects, "an array of objects with a text", is_row<has_text>,
       take_text_objects,
       [](const RequestField& field) { return array_schema(field, text_object_schema()); }},
      {InputForm::ids, "an array of token ids", has_ids,
       [](const json& value, RequestInputs& inputs) {
         inputs.ids = {value.get<std::vector<int64_t>>()};
       },
       [](const RequestField&) { return ids_schema(); }},
      {InputForm::id_rows, "an array of arrays of token ids", is_row<has_ids>, take_id_rows,
       [](const RequestField& field) { return array_schema(field, ids_schema()); }},
      {InputForm::question, "an object with a question and a context", is_question, take_question,
       [](const RequestField&) { return question_schema(); }},
  };
  return table;
}

const InputFormRow& row_of(InputForm form) {
  const auto& table = input_forms();
  return *std::find_if(table.begin(), table.end(),
                       [&](const InputFormRow& row) { return row.form == form; });
}

// The beginning of a client's field name, for an error message.
std::string beginning(const std::string& name) {
  size_t size = std::min<size_t>(name.size(), 64);
  // Does not cut inside a character.
  while (size < name.size() && (static_cast<unsigned char>(name[size]) & 0xC0U) == 0x80) --size;
  return name.substr(0, size);
}

void check_range(const RequestField& field, double value, std::string_view shown) {
  if (value >= field.minimum && value <= field.maximum) return;
  refuse_field(field.name,
               fmt::format("is {}; it must be from {} to {}", shown, field.minimum, field.maximum));
}

// Above it float64 does not represent every whole number.
constexpr double largest_exact = 9007199254740992;

// Whether the value is a whole number within int64_t.
bool is_whole(const json& value) {
  if (value.is_number_unsigned())
    return value.get<uint64_t>() <= std::numeric_limits<int64_t>::max();
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const auto number = value.get<double>();
  return std::trunc(number) == number && std::abs(number) <= largest_exact;
}

std::set<std::string> read_object(const json& object, const std::vector<RequestField>& fields);

// Reads a value into a variable of any of the types.
struct FieldReader {
  const RequestField& field;
  const json& value;
  std::set<std::string>& present;  // receives the names of nested fields

  void expect(bool is_right, std::string_view type) const {
    if (!is_right)
      refuse_field(field.name, fmt::format("is {}; it must be {}", value.type_name(), type));
  }

  static std::string choices(const EnumNames& names) {
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void check_name(const EnumNames& names, const std::string& name) const {
    if (std::find(names.begin(), names.end(), name) == names.end())
      refuse_field(field.name,
                   fmt::format("is {}; it must be one of {}", in_quotes(name), choices(names)));
  }

  void operator()(int64_t* number) const {
    if (!is_whole(value) && value.is_number())
      refuse_field(field.name, fmt::format("is {}; it must be a whole number from {} to {}",
                                           value.dump(), field.minimum, field.maximum));
    expect(is_whole(value), "a whole number");
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
           field.names.empty() ? "an array of strings" : "an array of " + choices(field.names));
    const size_t count = value.size();
    check_range(field, static_cast<double>(count), fmt::format("{} strings", count));
    for (const json& one : value)
      if (!field.names.empty()) check_name(field.names, one.get<std::string>());
    *texts = value.get<std::vector<std::string>>();
  }
  void operator()(RequestInputs* inputs) const {
    std::vector<std::string> names;
    for (const InputForm form : inputs->forms) {
      const InputFormRow& row = row_of(form);
      names.emplace_back(row.name);
      if (!row.fits(value)) continue;
      inputs->form = form;
      row.take(value, *inputs);
      const size_t count = inputs->texts.size() + inputs->ids.size();
      return check_range(field, static_cast<double>(count), fmt::format("{} inputs", count));
    }
    refuse_field(field.name, fmt::format("must be {}", fmt::join(names, " or ")));
  }
  void operator()(const std::vector<RequestField>& fields) const {
    expect(value.is_object(), "an object");
    if (fields.empty() && !value.empty()) refuse_field(field.name, "must be an empty object");
    for (const std::string& name : read_object(value, fields))
      present.insert(field.name + "." + name);
  }
  void operator()(const NamedVariable& variable) const {
    const auto& names = variable.names();
    expect(value.is_string(), "one of " + choices(names));
    check_name(names, value.get<std::string>());
    variable.set(value.get<std::string>());
  }
};

std::set<std::string> read_object(const json& object, const std::vector<RequestField>& fields) {
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const RequestField& field : fields) names.push_back(field.name);
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string meant = nearest(name, names);
    throw RequestError(
        422,
        fmt::format("unknown field {}; {}", in_quotes(name),
                    names.empty()   ? "leave it out"
                    : meant.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                    : fmt::format("did you mean {}?", meant)),
        beginning(name), "unknown_field");
  }
  std::set<std::string> present;
  for (const RequestField& field : fields) {
    const auto found = object.find(field.name);
    if (found != object.end() && !(field.is_nullable && found->is_null())) {
      std::visit(FieldReader{field, *found, present}, field.value);
      present.insert(field.name);
    } else if (field.is_required) {
      refuse_field(field.name, "is missing");
    }
  }
  return present;
}

bool has_names(const json& value, const RequestField& field);

bool has_names(const json& value, const std::vector<RequestField>& fields) {
  if (!value.is_object()) return false;
  size_t known = 0;
  for (const RequestField& field : fields) {
    const auto found = value.find(field.name);
    if (found == value.end() ? field.is_required : !has_names(*found, field)) return false;
    known += found != value.end();
  }
  return known == value.size();
}

bool has_names(const json& value, const RequestField& field) {
  if (field.is_nullable && value.is_null()) return true;
  const auto* fields = std::get_if<std::vector<RequestField>>(&field.value);
  return fields == nullptr ? !value.is_object() : has_names(value, *fields);
}

// The bound as a whole number, clamped to int64_t.
int64_t whole_bound(double bound) {
  constexpr double end = 9223372036854775808.0;
  return bound >= end ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(bound);
}

// Writes the schema of the values that FieldReader accepts.
struct FieldSchema {
  const RequestField& field;

  json with_default(json schema, const json& value) const {
    if (!field.is_required && field.has_default) schema["default"] = value;
    return schema;
  }

  // A default out of range means that the model's own value is used.
  bool has_in_range(double usual) const { return usual >= field.minimum && usual <= field.maximum; }

  // Generated clients cannot have names that differ only in case; the first spelling counts.
  static EnumNames distinct(const EnumNames& names) {
    EnumNames kept;
    for (const std::string& name : names)
      if (std::none_of(kept.begin(), kept.end(), [&](const std::string& other) {
            return boost::algorithm::iequals(name, other, std::locale::classic());
          }))
        kept.push_back(name);
    return kept;
  }

  json operator()(const int64_t* number) const {
    const json schema = {{"type", "integer"},
                         {"format", "int64"},
                         {"minimum", whole_bound(field.minimum)},
                         {"maximum", whole_bound(field.maximum)}};
    return has_in_range(static_cast<double>(*number)) ? with_default(schema, *number) : schema;
  }
  json operator()(const double* number) const {
    const json schema = {
        {"type", "number"}, {"minimum", field.minimum}, {"maximum", field.maximum}};
    return has_in_range(*number) ? with_default(schema, *number) : schema;
  }
  json operator()(const bool* flag) const { return with_default({{"type", "boolean"}}, *flag); }
  json operator()(const std::string*) const { return text_schema(); }
  json operator()(const std::vector<std::string>*) const {
    json items = text_schema();
    if (!field.names.empty()) items["enum"] = field.names;
    return array_schema(field, items);
  }
  json operator()(const RequestInputs* inputs) const {
    json schemas = json::array();
    for (const InputForm form : inputs->forms) schemas.push_back(row_of(form).schema(field));
    return {{"anyOf", schemas}};
  }
  json operator()(const NamedVariable& variable) const {
    return with_default({{"type", "string"}, {"enum", distinct(variable.names())}},
                        variable.name());
  }
  json operator()(const std::vector<RequestField>& fields) const { return request_schema(fields); }
};

json error_json(const RequestError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  return {{"error",
           {{"message", error.what()},
            {"type", error.status() < 500 ? "invalid_request_error" : "server_error"},
            {"param", or_null(error.param())},
            {"code", or_null(error.code())}}}};
}

HttpResponse error_response(const RequestError& error, const json& body) {
  return {.status = error.status(),
          .body = body.dump(-1, ' ', false, json::error_handler_t::replace)};
}

}  // namespace

HttpResponse openai_error(const RequestError& error) {
  return error_response(error, error_json(error));
}

HttpResponse detailed_error(const RequestError& error) {
  json body = error_json(error);
  body["detail"] = error.what();
  return error_response(error, body);
}

HttpResponse full_response(ErrorForm error) {
  HttpResponse response =
      error(RequestError(429, "too many requests wait for an answer; ask later", "", "queue_full"));
  response.fields = {{"Retry-After", "1"}};
  return response;
}

RequestField request_field(const Setting& setting, double maximum, bool has_default) {
  RequestField field;
  field.name = setting.key;
  field.minimum = setting.minimum;
  field.maximum = std::min(setting.maximum, maximum);
  field.has_default = has_default;
  field.help = setting.help;
  std::visit([&](const auto& variable) { field.value = variable; }, setting.value);
  return field;
}

std::set<std::string> read_request(std::string_view body, const std::vector<RequestField>& fields) {
  const json object = parse_body(body);
  if (!object.is_object()) throw RequestError(422, "the body must be one JSON object");
  return read_object(object, fields);
}

std::string pair_source(const std::string& first, const std::string& second) {
  std::string pair = first + ' ' + second;
  std::replace(pair.begin(), pair.end(), '\t', ' ');
  pair[first.size()] = '\t';
  return pair;
}

void check_synonyms(const std::set<std::string>& present, const std::vector<std::string>& names) {
  std::string chosen;
  for (const std::string& name : names) {
    if (!present.contains(name)) continue;
    if (!chosen.empty())
      throw RequestError(422,
                         fmt::format("{} and {} mean the same; send one of them", chosen, name),
                         name, "invalid_value");
    chosen = name;
  }
}

bool takes_names_of(std::string_view body, const std::vector<RequestField>& fields) {
  try {
    return has_names(parse_body(body), fields);
  } catch (const RequestError&) {
    return false;
  }
}

json request_schema(const std::vector<RequestField>& fields) {
  json properties = json::object(), required = json::array();
  for (const RequestField& field : fields) {
    json schema = std::visit(FieldSchema{field}, field.value);
    if (!field.help.empty()) schema["description"] = field.help;
    if (field.is_nullable) schema = {{"anyOf", {schema, {{"type", "null"}}}}};
    properties[field.name] = schema;
    if (field.is_required) required.push_back(field.name);
  }
  return {{"type", "object"},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", false}};
}

}  // namespace attend
