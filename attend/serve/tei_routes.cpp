#include "attend/serve/tei_routes.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/base/enum_names.h"
#include "attend/serve/asking.h"
#include "attend/serve/classify_route.h"
#include "attend/serve/embeddings_route.h"

namespace attend {
namespace {

using nlohmann::json;

struct TeiEmbedRequest {
  std::string model;
  RequestInputs inputs{{InputForm::text, InputForm::texts, InputForm::ids, InputForm::id_rows}};
  bool is_normalised = true, is_cut = false;
  int64_t dimensions = 0;

  std::vector<RequestField> fields() {
    return {{"model", &model},
            {"inputs", &inputs, 1, most_texts, true},
            {"normalize", &is_normalised, 0, 0, false, true},
            {"truncate", &is_cut, 0, 0, false, true},
            {"dimensions", &dimensions, 1, most_dimensions, false, true}};
  }
};

struct TeiPredictRequest {
  std::string model;
  RequestInputs inputs{{InputForm::text, InputForm::text_rows}};
  bool is_cut = false;

  std::vector<RequestField> fields() {
    return {{"model", &model},
            {"inputs", &inputs, 1, most_texts, true},
            {"truncate", &is_cut, 0, 0, false, true},
            // Hugging Face's client sends it, empty.
            {"parameters", std::vector<RequestField>{}, 0, 0, false, true}};
  }
};

struct TeiTokenizeRequest {
  std::string model;
  RequestInputs inputs{{InputForm::text, InputForm::texts}};
  bool adds_special = true;

  std::vector<RequestField> fields() {
    return {{"model", &model},
            {"inputs", &inputs, 1, most_texts, true},
            {"add_special_tokens", &adds_special, 0, 0, false, true}};
  }
};

// Such a server has one model, which its clients do not name: here it is the first.
std::string tei_model(const Service& service, const std::string& name) {
  return name.empty() && !service.models().empty() ? service.models().front().name : name;
}

json labels_json(const Answer& answer) {
  json labels = json::array();
  for (const Candidate& candidate : answer.candidates)
    labels.push_back({{"label", candidate.text}, {"score", std::exp(candidate.log_probability)}});
  return labels;
}

json model_type_json(const Model& model) {
  if (!model.answers_labels()) return {{"embedding", {{"pooling", "mean"}}}};
  json names = json::object(), ids = json::object();
  for (const std::string& label : model.labels()) {
    ids[label] = names.size();
    names[std::to_string(names.size())] = label;
  }
  return {{"classifier", {{"id2label", names}, {"label2id", ids}}}};
}

}  // namespace

HttpResponse tei_error(const RequestError& error) {
  const char* type = error.status() == 429   ? "Overloaded"
                     : error.status() == 503 ? "Unhealthy"
                     : error.status() >= 500 ? "Backend"
                                             : "Validation";
  // Such servers call a text that is too long a content that is too large.
  const int status = error.code() == too_long_code ? 413 : error.status();
  return {.status = status, .body = json_text({{"error", error.what()}, {"error_type", type}})};
}

void answer_tei_embed(Service& service, const HttpRequest& request, const HttpReply& reply) {
  TeiEmbedRequest asked;
  read_request(request.body, asked.fields());
  const ServedModel& served = service.model_named(tei_model(service, asked.model));
  const VectorForm form{asked.dimensions, asked.is_normalised, asked.is_cut, "inputs"};
  ask_vectors({service, served, reply, "inputs", tei_error},
              texts_of(served, asked.inputs, "inputs"),
              [&served, form](const std::vector<Embedding>& embeddings) {
                std::vector<std::string> all;
                for (size_t i = 0; i < embeddings.size(); ++i)
                  all.push_back(numbers_json(text_vector(*served.model, embeddings[i], i, form)));
                return HttpResponse{.body = fmt::format("[{}]", fmt::join(all, ","))};
              });
}

void answer_tei_predict(Service& service, const HttpRequest& request, const HttpReply& reply) {
  TeiPredictRequest asked;
  read_request(request.body, asked.fields());
  const ServedModel& served = service.model_named(tei_model(service, asked.model));
  if (served.model->tags())
    throw RequestError(422, "a tagger labels tokens; ask /v1/classify", "model", "invalid_value");
  ask({service, served, reply, "inputs", tei_error}, label_question(served, asked.inputs.texts, 0),
      [&served, is_cut = asked.is_cut,
       is_one = asked.inputs.form == InputForm::text](const std::vector<Answer>& answers) {
        json all = json::array();
        for (size_t i = 0; i < answers.size(); ++i) {
          if (answers[i].truncated && !is_cut) throw too_long(*served.model, "inputs", i);
          all.push_back(labels_json(answers[i]));
        }
        return HttpResponse{.body = json_text(is_one ? all[0] : all)};
      });
}

void answer_tei_tokenize(Service& service, const HttpRequest& request, const HttpReply& reply) {
  TeiTokenizeRequest asked;
  read_request(request.body, asked.fields());
  const Model& model = *text_model(service, tei_model(service, asked.model)).model;
  json all = json::array();
  for (const std::string& text : asked.inputs.texts) {
    json& tokens = all.emplace_back(json::array());
    for (const SourceToken& token : model.tokenise(text))
      // Where it was in the text is not known: the text may have been normalised.
      tokens.push_back({{"id", token.id},
                        {"text", token.text},
                        {"special", false},
                        {"start", nullptr},
                        {"stop", nullptr}});
  }
  reply.send({.body = json_text(all)});
}

void answer_tei_info(Service& service, const HttpRequest&, const HttpReply& reply) {
  const ServedModel& served = service.model_named(tei_model(service, ""));
  const ServiceOptions& options = service.options();
  reply.send({.body = json_text({{"model_id", served.name},
                                 {"model_sha", nullptr},
                                 {"model_dtype", name_of(options.model.weights)},
                                 {"model_type", model_type_json(*served.model)},
                                 {"max_concurrent_requests", options.queue},
                                 {"max_input_length", served.model->maximum_source_length()},
                                 {"max_batch_tokens", most_tokens_together},
                                 {"max_batch_requests", nullptr},
                                 {"tokenization_workers", served.model->threads()},
                                 {"max_client_batch_size", static_cast<int64_t>(most_texts)},
                                 {"auto_truncate", false},
                                 {"version", options.version}})});
}

std::vector<RequestField> tei_embed_fields() { return fields_of<TeiEmbedRequest>(); }
std::vector<RequestField> tei_predict_fields() { return fields_of<TeiPredictRequest>(); }
std::vector<RequestField> tei_tokenize_fields() { return fields_of<TeiTokenizeRequest>(); }

}  // namespace attend
