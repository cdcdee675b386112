#include <boost/algorithm/string/case_conv.hpp>
#include <cctype>
#include <locale>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/serve/answer_schemas.h"
#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"
#include "attend/serve/routes.h"

namespace attend {
namespace {

using nlohmann::json;

constexpr const char* json_media_type = "application/json";

// Errors have the route's form, or the server's form if the request is refused before routing.
json error_schema(const Route& route) {
  if (route.error != tei_error) return schema_reference("Error");
  return {{"anyOf", {schema_reference("Error"), schema_reference("TeiError")}}};
}

json content(const std::string& type, const json& schema) { return {{type, {{"schema", schema}}}}; }

// "tei_embed" -> "TeiEmbedRequest"
std::string request_name(const Route& route) {
  std::string name;
  bool is_first = true;
  for (const char c : route.name) {
    if (c != '_') name += is_first ? static_cast<char>(std::toupper(c)) : c;
    is_first = c == '_';
  }
  return name + "Request";
}

json operation(const Route& route, bool has_key) {
  json answered = json::object();
  for (const std::string& type : route.types)
    answered.update(content(
        type, type == json_media_type ? schema_reference(route.schema) : json{{"type", "string"}}));
  json result = {{"operationId", route.name},
                 {"responses",
                  {{"200", {{"description", "the answer"}, {"content", answered}}},
                   {"default",
                    {{"description", "an error with a remedy"},
                     {"content", content(json_media_type, error_schema(route))}}}}}};
  if (route.fields != nullptr)
    result["requestBody"] = {
        {"required", true},
        {"content", content(json_media_type, schema_reference(request_name(route)))}};
  if (std::string name = route_parameter(route); !name.empty())
    result["parameters"] = {{{"name", name.substr(1, name.size() - 2)},
                             {"in", "path"},
                             {"required", true},
                             {"schema", {{"type", "string"}}}}};
  if (has_key && route.needs_key) result["security"] = {{{"key", json::array()}}};
  return result;
}

}  // namespace

void answer_openapi(Service& service, const HttpRequest&, const HttpReply& reply) {
  const bool has_key = !service.key().empty();
  json paths = json::object(), schemas = answer_schemas();
  for (const Route& route : route_table()) {
    const std::string method =
        boost::algorithm::to_lower_copy(std::string(route.method), std::locale::classic());
    paths[route.path][method] = operation(route, has_key);
    if (route.fields != nullptr) schemas[request_name(route)] = request_schema(route.fields());
  }
  json document = {{"openapi", "3.1.0"},
                   {"info", {{"title", "attend serve"}, {"version", service.options().version}}},
                   {"paths", paths},
                   {"components", {{"schemas", schemas}}}};
  if (has_key)
    document["components"]["securitySchemes"] = {{"key", {{"type", "http"}, {"scheme", "bearer"}}}};
  reply.send({.body = json_text(document)});
}

}  // namespace attend
