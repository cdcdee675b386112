#include "attend/serve/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "attend/serve/asking.h"
#include "attend/serve/classify_route.h"
#include "attend/serve/completions_route.h"
#include "attend/serve/embeddings_route.h"
#include "attend/serve/explain_route.h"
#include "attend/serve/openapi_route.h"
#include "attend/serve/page_route.h"
#include "attend/serve/predict_route.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/score_route.h"
#include "attend/serve/service.h"
#include "attend/serve/tei_routes.h"

namespace attend {
namespace {

using nlohmann::json;

void answer_alive(Service&, const HttpRequest&, const HttpReply& reply) {
  reply.send({.body = R"({"status":"alive"})"});
}

void answer_ready(Service& service, const HttpRequest&, const HttpReply& reply) {
  if (!service.is_ready())
    throw RequestError(503, service.is_loaded() ? "the server is about to end; ask another"
                                                : "the models are being loaded; ask later");
  reply.send({.body = R"({"status":"ready"})"});
}

void answer_metrics(Service& service, const HttpRequest&, const HttpReply& reply) {
  const auto& lost = service.options().lost_log_lines;
  reply.send({.type = "text/plain; version=0.0.4; charset=utf-8",
              .body = service.metrics().text(service.queue_size(), lost ? lost() : 0)});
}

// As OpenAI's clients read it.
void answer_models(Service& service, const HttpRequest&, const HttpReply& reply) {
  json data = json::array();
  for (const ServedModel& served : service.models())
    data.push_back({{"id", served.name},
                    {"object", "model"},
                    {"created", served.loaded},
                    {"owned_by", "attend"},
                    {"type", served.model->type()},
                    {"reads_text", !served.model->has_source_image()},
                    {"answers_numbers", served.model->answers_numbers()},
                    {"examples", service.options().examples}});
  reply.send({.body = json_text({{"object", "list"}, {"data", data}})});
}

// Takes as long for every key that is as long.
bool is_key(const std::string& authorization, const std::string& key) {
  const std::string wanted = "Bearer " + key;
  if (authorization.size() != wanted.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    difference |= static_cast<unsigned char>(authorization[i] ^ wanted[i]);
  return difference == 0;
}

bool takes(const Route& route, const std::string& method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// A guess of the seconds that loading still takes.
constexpr const char* loading_seconds = "5";

// The route of that head; null if there is none, and `allowed` lists the methods of its path.
const Route* find_route(const HttpHead& head, std::string& allowed) {
  for (const Route& route : route_table()) {
    if (route.path != head.path) continue;
    if (takes(route, head.method)) return &route;
    allowed += (allowed.empty() ? "" : ", ") + route.method;
    if (route.method == "GET") allowed += ", HEAD";
  }
  return nullptr;
}

// Why the route does not answer now.
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

}  // namespace

const std::vector<Route>& route_table() {
  using enum RouteNeeds;
  static const std::vector<std::string> json_type = {"application/json"};
  static const std::vector<Route> table = {
      {"GET", "/", nothing, false, answer_page_body, nullptr, openai_error, {"text/html"}},
      {"GET", "/page.css", nothing, false, answer_page_style, nullptr, openai_error, {"text/css"}},
      {"GET",
       "/page.js",
       nothing,
       false,
       answer_page_script,
       nullptr,
       openai_error,
       {"text/javascript"}},
      {"GET", "/health", nothing, false, answer_alive, nullptr, openai_error, json_type, true},
      {"GET", "/livez", nothing, false, answer_alive, nullptr, openai_error, json_type, true},
      {"GET", "/ready", nothing, false, answer_ready, nullptr, openai_error, json_type, true},
      {"GET", "/readyz", nothing, false, answer_ready, nullptr, openai_error, json_type, true},
      {"GET", "/metrics", nothing, true, answer_metrics, nullptr, openai_error, {"text/plain"}},
      {"GET", "/openapi.json", nothing, false, answer_openapi},
      {"GET", "/v1/models", models, true, answer_models},
      {"POST", "/v1/predict", queue, true, answer_predict, predict_fields},
      {"POST", "/v1/classify", queue, true, answer_classify, classify_fields},
      {"POST", "/v1/embeddings", queue, true, answer_embeddings, embeddings_fields},
      {"POST",
       "/v1/explain",
       models,
       true,
       answer_explain,
       explain_fields,
       openai_error,
       {"application/json", "image/svg+xml", "text/html"}},
      {"POST",
       "/v1/completions",
       queue,
       true,
       answer_completions,
       completions_fields,
       openai_error,
       {"application/json", "text/event-stream"}},
      {"POST", "/embed", queue, true, answer_tei_embed, tei_embed_fields, tei_error},
      {"POST", "/predict", queue, true, answer_tei_predict, tei_predict_fields, tei_error},
      {"POST", "/tokenize", models, true, answer_tei_tokenize, tei_tokenize_fields, tei_error},
      {"GET", "/info", models, true, answer_tei_info, nullptr, tei_error},
      {"POST", "/v1/score", nothing, true, answer_score, score_fields},
  };
  return table;
}

std::optional<HttpResponse> head_refusal(const Service& service, const HttpHead& head) {
  std::string allowed;
  const Route* route = find_route(head, allowed);
  if (route == nullptr && allowed.empty())
    return RequestError(404, "there is no such path", "", "unknown_path").response();
  if (route == nullptr) {
    HttpResponse response =
        RequestError(405, fmt::format("this path takes {}", allowed)).response();
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
    reply.send(route.error(failure_of(error)));
  }
}

std::string route_label(const std::string& path) {
  const auto& table = route_table();
  return std::any_of(table.begin(), table.end(),
                     [&](const Route& route) { return route.path == path; })
             ? path
             : "other";
}

}  // namespace attend
