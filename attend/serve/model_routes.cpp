#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"
#include "attend/serve/service.h"

namespace attend {
namespace {

using nlohmann::json;

// In OpenAI's format.
json model_json(const Service& service, const ServedModel& served) {
  const Model& model = *served.model;
  return {{"id", served.name},
          {"object", "model"},
          {"created", served.loaded},
          {"owned_by", "attend"},
          {"type", model.type()},
          {"reads_text", !model.has_source_image()},
          {"answers", model.answer_kind().has_answers()},
          {"answers_numbers", !model.answer_kind().has_probabilities()},
          {"answers_label_sets", model.answer_kind().is_label_set()},
          {"answers_spans", model.answer_kind().is_span()},
          {"examples", service.options().examples}};
}

int digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// Decodes the percent escapes in a part of a path.
std::string unescaped(std::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    const bool is_escape =
        part[i] == '%' && i + 2 < part.size() && digit(part[i + 1]) >= 0 && digit(part[i + 2]) >= 0;
    text += is_escape ? static_cast<char>(16 * digit(part[i + 1]) + digit(part[i + 2])) : part[i];
    if (is_escape) i += 2;
  }
  return text;
}

}  // namespace

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

void answer_models(Service& service, const HttpRequest&, const HttpReply& reply) {
  json data = json::array();
  for (const ServedModel& served : service.models()) data.push_back(model_json(service, served));
  reply.send({.body = json_text({{"object", "list"}, {"data", data}})});
}

void answer_model(Service& service, const HttpRequest& request, const HttpReply& reply) {
  const std::string& path = request.head.path;
  const std::string name = unescaped(std::string_view(path).substr(path.rfind('/') + 1));
  reply.send({.body = json_text(model_json(service, service.model_named(name)))});
}

}  // namespace attend
