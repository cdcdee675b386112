#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attend/decode/search_options.h"
#include "attend/inference/answer_json.h"
#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"

namespace attend {
namespace {

using nlohmann::json;

// Whether the model's folder may have a default for the option.
bool in_folder(const std::string& name) {
  const Settings settings = SearchOptions().folder_settings();
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& setting) { return setting.key == name; });
}

struct PredictRequest {
  std::string model;
  std::vector<std::string> texts, prefixes;
  SearchOptions search;
  Sampling sampling;
  int64_t samples = 1, seed = 1;
  bool has_wu_penalty = false, has_details = false;
  UnknownTokens unknown = UnknownTokens::forbid;

  std::vector<RequestField> fields() {
    std::vector<RequestField> all = {{"model", &model},
                                     {"texts", &texts, 1, max_texts, true},
                                     {"prefixes", &prefixes, 1, max_texts},
                                     {"wu_length_penalty", &has_wu_penalty},
                                     {"unknown", &unknown, 0, 0, false, false, false},
                                     {"details", &has_details}};
    for (const Setting& setting : search.settings()) {
      const bool is_length = setting.key.ends_with("_length");
      // Without the field, the model's folder decides.
      all.push_back(request_field(setting, is_length ? max_answer_tokens : max_answers,
                                  !in_folder(setting.key)));
    }
    const std::vector<RequestField> more = draws();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Any of these fields requests sampling, so they have no default.
  std::vector<RequestField> draws() {
    std::vector<RequestField> all = {{"samples", &samples, 1, max_answers, false, false, false},
                                     {"seed", &seed, 0, max_seed, false, false, false}};
    for (const Setting& setting : sampling.settings())
      all.push_back(request_field(setting, setting.maximum, false));
    return all;
  }
};

bool any_present(const std::vector<RequestField>& fields, const std::set<std::string>& present) {
  for (const RequestField& field : fields)
    if (present.contains(field.name)) return true;
  return false;
}

// Sets absent fields to the defaults of the model's folder.
void take_search_defaults(const Model& model, const std::set<std::string>& present,
                          SearchOptions& search) {
  SearchOptions own = model.search_options();
  if (!present.contains("beam")) search.beam = std::min<int64_t>(own.beam, max_answers);
  if (!present.contains("length_penalty")) search.length_penalty = own.length_penalty;
  if (!present.contains("no_answer")) search.no_answer = own.no_answer;
  model.answer_kind().fit(search);
  own.minimum_length = std::min<int64_t>(own.minimum_length, max_answer_tokens);
  own.maximum_length = std::min<int64_t>(own.maximum_length, max_answer_tokens);
  search.take_lengths(own, present.contains("minimum_length"), present.contains("maximum_length"));
}

PredictRequest read_predict(const Service& service, const std::string& body) {
  PredictRequest asked;
  const std::set<std::string> present = read_request(body, asked.fields());
  take_search_defaults(*service.model_named(asked.model).model, present, asked.search);
  if (!asked.prefixes.empty() && asked.prefixes.size() != asked.texts.size())
    throw RequestError(
        422,
        fmt::format("there are {} prefixes for {} texts; give one for each text, or none",
                    asked.prefixes.size(), asked.texts.size()),
        "prefixes", "invalid_value");
  SearchOptions& search = asked.search;
  if (asked.has_wu_penalty) search.length_penalty_form = LengthPenalty::wu;
  if (present.contains("unknown")) search.unknown = asked.unknown;
  search.with_weights = asked.has_details;
  if (any_present(asked.draws(), present)) {
    if (search.beam > 1 || search.nbest > 1)
      throw RequestError(422, "answers are drawn or searched for; leave beam and nbest out", "beam",
                         "invalid_value");
    asked.sampling.seed = static_cast<uint64_t>(asked.seed);
    search.sampling = asked.sampling;
    search.nbest = asked.samples;
  } else if (search.nbest > search.beam) {
    throw RequestError(422,
                       fmt::format("nbest is {}; a beam of {} has no more answers, raise beam",
                                   search.nbest, search.beam),
                       "nbest", "invalid_value");
  }
  search.check();
  return asked;
}

}  // namespace

std::vector<RequestField> predict_fields() { return fields_of<PredictRequest>(); }

void answer_predict(Service& service, const HttpRequest& request, const HttpReply& reply) {
  PredictRequest asked = read_predict(service, request.body);
  const ServedModel& served = service.model_named(asked.model);
  if (asked.search.keep_seen && !served.model->answer_kind().ranks())
    throw RequestError(422, "keep_seen is for models that rank items", "keep_seen",
                       "invalid_value");
  if (asked.search.no_answer && !served.model->answer_kind().is_span())
    throw RequestError(422, "no_answer is for models that answer with parts of passages",
                       "no_answer", "invalid_value");
  served.model->check(asked.search);
  std::vector<Request> requests = requests_of(asked.texts, asked.search, nullptr, asked.prefixes);
  ask({service, served, reply}, std::move(requests),
      [&served, texts = std::move(asked.texts),
       details = asked.has_details](const std::vector<Answer>& answers) {
        json all = json::array();
        for (size_t i = 0; i < answers.size(); ++i)
          all.push_back(answer_json(*served.model, texts[i], answers[i], details));
        return answers_response(served, all);
      });
}

}  // namespace attend
