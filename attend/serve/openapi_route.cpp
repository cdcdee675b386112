#include "attend/serve/openapi_route.h"

#include <boost/algorithm/string/case_conv.hpp>
#include <locale>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/serve/asking.h"
#include "attend/serve/routes.h"

namespace attend {
namespace {

using nlohmann::json;

json form_schema(ErrorForm form) {
  const json error = json::parse(form(RequestError(400, "why")).body);
  json properties = json::object();
  for (const auto& [name, value] : error.items()) properties[name] = {{"type", value.type_name()}};
  return {{"type", "object"}, {"properties", properties}};
}

// An error of any status: of the route, or of the server, which refuses some requests before it
// knows their route.
json error_schema(const Route& route) {
  json forms = json::array({form_schema(openai_error)});
  if (route.error != openai_error) forms.push_back(form_schema(route.error));
  return {{"anyOf", forms}};
}

json content(const std::string& type, const json& schema) { return {{type, {{"schema", schema}}}}; }

json operation(const Route& route, bool has_key) {
  json answered = json::object();
  for (const std::string& type : route.types) answered.update(content(type, json::object()));
  json result = {{"responses",
                  {{"200", {{"description", "the answer"}, {"content", answered}}},
                   {"default",
                    {{"description", "an error, which says what to do"},
                     {"content", content("application/json", error_schema(route))}}}}}};
  if (route.fields != nullptr)
    result["requestBody"] = {
        {"required", true},
        {"content", content("application/json", request_schema(route.fields()))}};
  if (has_key && route.needs_key) result["security"] = {{{"key", json::array()}}};
  return result;
}

}  // namespace

void answer_openapi(Service& service, const HttpRequest&, const HttpReply& reply) {
  const bool has_key = !service.key().empty();
  json paths = json::object();
  for (const Route& route : route_table()) {
    const std::string method =
        boost::algorithm::to_lower_copy(std::string(route.method), std::locale::classic());
    paths[route.path][method] = operation(route, has_key);
  }
  json document = {{"openapi", "3.1.0"},
                   {"info", {{"title", "attend serve"}, {"version", service.options().version}}},
                   {"paths", paths}};
  if (has_key)
    document["components"] = {
        {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}};
  reply.send({.body = json_text(document)});
}

}  // namespace attend
