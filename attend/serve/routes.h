#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// Condition for reading a request.
enum class RouteNeeds {
  nothing,
  models,  // the models are loaded, else 503
  queue    // and a model's AnswerQueue has room, else 429
};

// Answers now, or later on another thread. May throw RequestError and Error (422).
using RouteAnswer = void(Service& service, const HttpRequest& request, const HttpReply& reply);
// Fields of a request's JSON.
using RouteFields = std::vector<RequestField>();

// Handler of one path and method. HEAD is GET without the body.
struct Route {
  std::string method;
  std::string path;  // may end in a parameter such as {model}: any text without a slash
  std::string name;  // operationId in /openapi.json
  RouteNeeds needs = RouteNeeds::nothing;
  bool needs_key = false;  // without the service's key, if it has one: 401
  RouteAnswer* answer;
  RouteFields* fields = nullptr;                          // null: the body is not read
  ErrorForm error = openai_error;                         // form of errors after routing
  std::vector<std::string> types = {"application/json"};  // content types of the answer
  std::string schema = {};  // schema of a JSON answer: a name of answer_schemas()
  // For probes, which call by address; the answer must not contain secrets.
  bool takes_any_host = false;
};

const std::vector<Route>& route_table();

// The parameter at the end of the route's path, with braces; empty if there is none.
std::string route_parameter(const Route& route);
// Refusal by the head, independent of the load: 404 for an unknown path, 405 for a wrong method,
// 401 without the key. Empty if a route accepts the head.
std::optional<HttpResponse> head_refusal(const Service& service, const HttpHead& head);

// The route for that head. Null if the request is refused; the refusal is then sent to `reply`.
// Refuses as head_refusal(), and if RouteNeeds is not met.
const Route* admitting_route(Service& service, const HttpHead& head, const HttpReply& reply);

// Answers an admitted request; exceptions are sent in the route's error form.
void answer_by_route(const Route& route, Service& service, const HttpRequest& request,
                     const HttpReply& reply);

// Paths of the routes that accept any Host.
std::vector<std::string> open_paths();

// Label of a path in the metrics: the path of a route, or "other".
std::string route_label(const std::string& path);

}  // namespace attend
