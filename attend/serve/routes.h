#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// What must be there before a request is read.
enum class RouteNeeds {
  nothing,
  models,  // they are loaded, or it is told 503
  queue    // and one of them has room in its AnswerQueue, or it is told 429
};

// What a server answers at one path to one method. HEAD is GET without the body.
struct Route {
  std::string method;
  std::string path;  // may end in one parameter, such as {model}, which is any text without a slash
  std::string name;  // operationId in /openapi.json
  RouteNeeds needs = RouteNeeds::nothing;
  bool needs_key = false;  // 401 without the service's key, if it has one
  // Answers now or later, on another thread. May throw RequestError and Error (422).
  void (*answer)(Service& service, const HttpRequest& request, const HttpReply& reply);
  // What the JSON of a request holds; null: nothing is read of its body.
  std::vector<RequestField> (*fields)() = nullptr;
  ErrorForm error = openai_error;  // of what goes wrong once the route is known
  std::vector<std::string> types = {"application/json"};  // of an answer
  std::string schema = {};      // of an answer in JSON: a name of answer_schemas()
  bool takes_any_host = false;  // for probes, which know an address; the answer says nothing secret
};

const std::vector<Route>& route_table();

// The parameter at the end of the route's path, in braces; empty: none.
std::string route_parameter(const Route& route);
// Why no request with that head is answered, however much is to do: 404 if no route has the path,
// 405 if no route of the path has the method, 401 without the key. None: a route has it.
std::optional<HttpResponse> head_refusal(const Service& service, const HttpHead& head);

// The route that answers a request with that head. Null where the head is enough to refuse it, and
// `reply` has been told why: as head_refusal() says, and if what the route needs is not there.
const Route* admitting_route(Service& service, const HttpHead& head, const HttpReply& reply);

// Answers a request that the route admits, with what it throws in its form of errors.
void answer_by_route(const Route& route, Service& service, const HttpRequest& request,
                     const HttpReply& reply);

// Paths of the routes that take any Host.
std::vector<std::string> open_paths();

// The path as metrics count it: that of a route, or "other".
std::string route_label(const std::string& path);

}  // namespace attend
