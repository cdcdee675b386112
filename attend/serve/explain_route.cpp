#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attend/explain/explain_answer.h"
#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/service.h"

namespace attend {
namespace {

// The work grows at least with the square of the text's length.
constexpr size_t max_explained_bytes = 4096;
constexpr double max_numbered = 10000, max_explained_beam = 64, max_named_heads = 1000;

struct ExplainRequest {
  std::string model, pair;
  int64_t layer = 0, head = 0;
  ExplainFormat format = value_of<ExplainFormat>("json", "format");
  ExplanationRequest asked;

  std::vector<RequestField> fields() {
    ShowOptions& show = asked.show;
    std::vector<RequestField> all = {
        {"model", &model},
        {"text", &asked.text, 0, 0, true},
        {"target", &asked.target},
        {"against", &asked.against},
        {.name = "pair",
         .value = &pair,
         .has_default = false,
         .help = "other text: explains why the model finds both alike"},
        {"without", &asked.without, 1, max_named_heads},
        {"ablation", &show.ablation},
        // Without the field, the model's folder decides.
        request_field(setting_of(asked.search.settings(), "beam"), max_explained_beam, false),
        {"view", &show.view},
        {"method", &show.method},
        {.name = "at",
         .value = &show.edge,
         .help = "the score of the view scores: encoder.3.head.5.query.7.key.2"},
        {"layer", &layer, 1, max_numbered},
        {"head", &head, 1, max_numbered},
        {"words", &show.words},
        {"evidence", &show.evidence},
        {"format", &format}};
    for (RequestField& field : language_fields(asked.search)) all.push_back(std::move(field));
    return all;
  }
};

void check_explained_size(const std::string& text, const std::string& field) {
  if (text.size() > max_explained_bytes)
    throw RequestError(422,
                       fmt::format("{} has {} bytes; up to {} are explained", field, text.size(),
                                   max_explained_bytes),
                       field, "invalid_value");
}

ExplainRequest read_explain(const Service& service, const std::string& body) {
  ExplainRequest request;
  const std::set<std::string> present = read_request(body, request.fields());
  const SearchOptions given = request.asked.search;
  SearchOptions& search = request.asked.search;
  search = service.model_named(request.model).model->search_options();
  if (present.contains("beam")) search.beam = given.beam;
  search.source_language = given.source_language;
  search.target_language = given.target_language;
  MethodChoice& choice = request.asked.show.choice;
  if (present.contains("pair")) request.asked.pair = request.pair;
  if (present.contains("layer")) choice.layer = request.layer;
  if (present.contains("head")) choice.head = request.head;
  request.asked.file = &file_of(request.format);
  check_explained_size(request.asked.target, "target");
  check_explained_size(request.asked.against, "against");
  check_explained_size(request.pair, "pair");
  return request;
}

// Converts lines of JSON to an array.
std::string listed_explanations(const std::string& model, std::string lines) {
  lines.pop_back();
  for (size_t end = 0; (end = lines.find('\n', end)) != std::string::npos;) lines[end] = ',';
  return fmt::format("{{\"model\":{},\"explanations\":[{}]}}", json_text(model), lines);
}

HttpResponse explain_response(const ServedModel& served, const ExplanationRequest& asked,
                              const HttpReply& reply) {
  const ExplainFile& file = *asked.file;
  std::string made = explained_file(
      *explain_answer(*served.model, asked, {.is_stopped = [&] { return reply.is_abandoned(); }}),
      file);
  if (file.has_objects) made = listed_explanations(served.name, std::move(made));
  return {.type = file.media_type, .body = std::move(made)};
}

}  // namespace

void answer_explain(Service& service, const HttpRequest& request, const HttpReply& reply) {
  ExplainRequest asked = read_explain(service, request.body);
  const ServedModel& served = service.model_named(asked.model);
  check_source(served, asked.asked.text, "text", "text");
  if (!served.model->has_source_image()) check_explained_size(asked.asked.text, "text");
  service.compute(served, reply, [&served, reply, asked = std::move(asked.asked)] {
    return explain_response(served, asked, reply);
  });
}

std::vector<RequestField> explain_fields() { return fields_of<ExplainRequest>(); }

std::vector<std::string> explain_types() {
  std::set<std::string> types;
  for (const ExplainFile& file : explain_files())
    if (!file.has_objects) types.insert(file.media_type.substr(0, file.media_type.find(';')));
  return {types.begin(), types.end()};
}

}  // namespace attend
