#include "attend/serve/routes.h"

#include <fmt/format.h>

#include <boost/algorithm/string/case_conv.hpp>
#include <locale>
#include <optional>
#include <string_view>
#include <utility>

#include "attend/serve/asking.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/service.h"

namespace attend {
namespace {

// "Bearer" in any case, a space and the key. Takes equal time for all keys of equal length.
bool is_key(const std::string& authorization, const std::string& key) {
  constexpr std::string_view scheme = "bearer ";
  if (authorization.size() != scheme.size() + key.size()) return false;
  const std::string given = boost::algorithm::to_lower_copy(authorization.substr(0, scheme.size()),
                                                            std::locale::classic());
  if (given != scheme) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < key.size(); ++i)
    difference |= static_cast<unsigned char>(authorization[scheme.size() + i] ^ key[i]);
  return difference == 0;
}

bool has_path(const Route& route, std::string_view path) {
  const size_t fixed = route.path.size() - route_parameter(route).size();
  if (fixed == route.path.size()) return path == route.path;
  return path.size() > fixed && path.substr(0, fixed) == route.path.substr(0, fixed) &&
         path.find('/', fixed) == std::string_view::npos;
}

bool takes(const Route& route, const std::string& method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// Estimate of the remaining loading time in seconds.
constexpr const char* loading_seconds = "5";

// The route for that head. If it is null, `allowed` lists the methods of the path.
const Route* find_route(const HttpHead& head, std::string& allowed) {
  for (const Route& route : route_table()) {
    if (!has_path(route, head.path)) continue;
    if (takes(route, head.method)) return &route;
    allowed += (allowed.empty() ? "" : ", ") + route.method;
    if (route.method == "GET") allowed += ", HEAD";
  }
  return nullptr;
}

// Refusal if RouteNeeds is not met.
std::optional<HttpResponse> load_refusal(const Route& route, Service& service) {
  if (route.needs == RouteNeeds::nothing) return std::nullopt;
  if (!service.is_loaded()) {
    if (service.options().waits_for_models) return std::nullopt;
    HttpResponse response =
        route.error(RequestError(503, "the models are being loaded; ask later"));
    response.fields = {{"Retry-After", loading_seconds}};
    return response;
  }
  if (route.needs == RouteNeeds::queue && service.is_full()) return full_response(route.error);
  return std::nullopt;
}

// Adds to the refusal of a request which other path takes its fields, if this one does not.
RequestError with_other_path(const RequestError& error, const Route& route,
                             const std::string& body) {
  if (error.status() != 422 || route.fields == nullptr || takes_names_of(body, route.fields()))
    return error;
  for (const Route& other : route_table())
    if (other.fields != nullptr && other.path != route.path && takes_names_of(body, other.fields()))
      return {422, fmt::format("{}; {} takes the fields of this request", error.what(), other.path),
              error.param(), error.code()};
  return error;
}

}  // namespace

std::string route_parameter(const Route& route) {
  return route.path.ends_with('}') ? route.path.substr(route.path.rfind('{')) : "";
}

std::optional<HttpResponse> head_refusal(const Service& service, const HttpHead& head) {
  std::string allowed;
  const Route* route = find_route(head, allowed);
  if (route == nullptr && allowed.empty())
    return openai_error(RequestError(404, "no such path; see /openapi.json", "", "unknown_path"));
  if (route == nullptr) {
    HttpResponse response =
        openai_error(RequestError(405, fmt::format("this path takes {}", allowed)));
    response.fields = {{"Allow", allowed}};
    return response;
  }
  if (!route->needs_key || service.key().empty() || is_key(head.authorization, service.key()))
    return std::nullopt;
  HttpResponse response = route->error(
      RequestError(401, "send Authorization: Bearer and the server's key", "", "invalid_api_key"));
  response.fields = {{"WWW-Authenticate", "Bearer"}};
  return response;
}

const Route* admitting_route(Service& service, const HttpHead& head, const HttpReply& reply) {
  std::string allowed;
  const Route* route = find_route(head, allowed);
  std::optional<HttpResponse> refusal = head_refusal(service, head);
  if (!refusal) refusal = load_refusal(*route, service);
  if (!refusal) return route;
  reply.send(std::move(*refusal));
  return nullptr;
}

std::vector<std::string> open_paths() {
  std::vector<std::string> paths;
  for (const Route& route : route_table())
    if (route.takes_any_host) paths.push_back(route.path);
  return paths;
}

void answer_by_route(const Route& route, Service& service, const HttpRequest& request,
                     const HttpReply& reply) {
  try {
    route.answer(service, request, reply);
  } catch (const Error& error) {
    reply.send(route.error(with_other_path(failure_of(error), route, request.body)));
  }
}

std::string route_label(const std::string& path) {
  for (const Route& route : route_table())
    if (has_path(route, path)) return route.path;
  return "other";
}

}  // namespace attend
