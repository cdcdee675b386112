#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "attend/inference/answer_json.h"
#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"

namespace attend {
namespace {

struct ClassifyRequest {
  std::string model;
  std::vector<std::string> texts;
  int64_t nbest = 0;

  std::vector<RequestField> fields() {
    return {
        {"model", &model}, {"texts", &texts, 1, max_texts, true}, {"nbest", &nbest, 1, max_labels}};
  }
};

}  // namespace

bool gives_labels(const AnswerKind& kind) {
  return kind.is_label() || kind.is_label_set() || kind.is_tags();
}

std::vector<Request> label_requests(const ServedModel& served,
                                    const std::vector<std::string>& texts, int64_t maximum) {
  const Model& model = *served.model;
  const AnswerKind& kind = model.answer_kind();
  if (!gives_labels(kind))
    throw RequestError(
        422, fmt::format("a model of type {} has no labels; ask /v1/predict", model.type()),
        "model", "invalid_value");
  if (kind.is_label_set()) return requests_of(texts, SearchOptions());
  const auto labels = kind.is_tags() ? 1 : std::ssize(model.labels());
  if (maximum > labels && kind.is_tags())
    throw RequestError(422, "a tagger gives the most probable label of each token; leave nbest out",
                       "nbest", "invalid_value");
  SearchOptions search;
  search.beam = search.nbest = maximum > 0 ? std::min(maximum, labels) : labels;
  return requests_of(texts, search);
}

void answer_classify(Service& service, const HttpRequest& request, const HttpReply& reply) {
  ClassifyRequest asked;
  read_request(request.body, asked.fields());
  const ServedModel& served = service.model_named(asked.model);
  ask({service, served, reply}, label_requests(served, asked.texts, asked.nbest),
      [&served, asked](const std::vector<Answer>& answers) {
        nlohmann::json all = nlohmann::json::array();
        for (size_t i = 0; i < answers.size(); ++i)
          all.push_back(classification_json(
              *served.model, asked.texts[i], answers[i],
              asked.nbest > 0 ? asked.nbest : static_cast<int64_t>(max_labels)));
        return answers_response(served, all);
      });
}

std::vector<RequestField> classify_fields() { return fields_of<ClassifyRequest>(); }

}  // namespace attend
