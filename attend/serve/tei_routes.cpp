#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"
#include "attend/serve/tei-inl.h"

namespace attend {
namespace {

using internal::embed_texts;
using internal::predict_labels;
using internal::prompt_of;
using internal::TeiRequest;
using nlohmann::json;
using nlohmann::ordered_json;

// Maximum count of numbers in all token vectors; each takes about 11 bytes as JSON.
constexpr size_t max_token_numbers = 1 << 22;

// The answer is about 60 times as long as the texts.
constexpr size_t max_tokenised_bytes = 1 << 18;

struct TeiEmbedRequest : TeiRequest {
  RequestInputs inputs{{InputForm::text, InputForm::texts, InputForm::ids, InputForm::id_rows}};

  std::vector<RequestField> inputs_field() { return {{"inputs", &inputs, 1, max_texts, true}}; }
  std::vector<RequestField> fields() {
    return joined({naming(), inputs_field(), cutting(), prompting(), scaling()});
  }
};

struct TeiEmbedAllRequest : TeiEmbedRequest {
  std::vector<RequestField> fields() {
    return joined({naming(), inputs_field(), cutting(), prompting()});
  }
};

struct TeiPredictRequest : TeiRequest {
  RequestInputs inputs{{InputForm::text, InputForm::text_rows}};

  std::vector<RequestField> fields() {
    return joined({naming(),
                   {{"inputs", &inputs, 1, max_texts, true}},
                   cutting(),
                   scoring(),
                   parameters(ranking())});
  }
};

struct TeiSimilarityRequest : TeiRequest {
  std::string sentence;
  std::vector<std::string> others;

  std::vector<RequestField> fields() {
    const std::vector<RequestField> inputs = {{"source_sentence", &sentence, 0, 0, true},
                                              {"sentences", &others, 1, max_texts, true}};
    return joined({naming(),
                   {{"inputs", inputs, 0, 0, true},
                    {"parameters", joined({cutting(), prompting()}), 0, 0, false, true}}});
  }
};

struct TeiTokenizeRequest : TeiRequest {
  RequestInputs inputs{{InputForm::text, InputForm::texts}};
  bool adds_special = true;

  std::vector<RequestField> fields() {
    return joined({naming(),
                   {{"inputs", &inputs, 1, max_texts, true},
                    {"add_special_tokens", &adds_special, 0, 0, false, true}},
                   prompting()});
  }
};

struct TeiDecodeRequest : TeiRequest {
  RequestInputs ids{{InputForm::ids, InputForm::id_rows}};
  bool skips_special = true;

  std::vector<RequestField> fields() {
    return joined({naming(),
                   {{"ids", &ids, 1, max_texts, true},
                    {"skip_special_tokens", &skips_special, 0, 0, false, true}}});
  }
};

VectorForm vector_form(const TeiRequest& asked) {
  return {asked.dimensions, asked.is_normalised, asked.is_cut, "inputs"};
}

// At most `top` labels, if that is not 0.
json labels_json(const Answer& answer, int64_t top) {
  json labels = json::array();
  const auto add = [&](const std::string& label, double log_probability) {
    labels.push_back({{"label", label}, {"score", std::exp(log_probability)}});
  };
  for (const Candidate& candidate : answer.candidates) {
    for (const Alternative& label : candidate.labels) add(label.token, label.log_probability);
    if (candidate.labels.empty()) add(candidate.text, candidate.log_probability);
  }
  if (top > 0 && top < std::ssize(labels))
    labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(top), labels.end());
  return labels;
}

template <class Request>
Request read_tei(const HttpRequest& request) {
  Request asked;
  read_request(request.body, asked.fields());
  asked.check();
  return asked;
}

// The token vectors of a text as a JSON array.
std::string token_vectors_json(const Embedding& embedding) {
  std::string all;
  const auto depth = static_cast<size_t>(embedding.depth);
  for (size_t i = 0; i < embedding.vectors.size(); i += depth)
    all += fmt::format(
        "{}[{}]", i > 0 ? "," : "",
        fmt::join(embedding.vectors.data() + i, embedding.vectors.data() + i + depth, ","));
  return fmt::format("[{}]", all);
}

double product(const std::vector<float>& one, const std::vector<float>& other) {
  double sum = 0;
  for (size_t i = 0; i < one.size(); ++i) sum += static_cast<double>(one[i]) * other[i];
  return sum;
}

ordered_json token_json(const SourceToken& token) {
  // Positions are unknown: the text may have been normalised.
  return {{"id", token.id},
          {"text", token.text},
          {"special", token.is_special},
          {"start", nullptr},
          {"stop", nullptr}};
}

ordered_json tokens_json(const Model& model, const std::string& text, bool adds_special) {
  ordered_json all = ordered_json::array();
  for (const SourceToken& token : model.tokenise(text))
    if (adds_special || !token.is_special) all.push_back(token_json(token));
  return all;
}

json model_type_json(const Model& model) {
  if (model.labels().empty()) return {{"embedding", {{"pooling", model.pooling()}}}};
  json names = json::object(), ids = json::object();
  for (const std::string& label : model.labels()) {
    ids[label] = names.size();
    names[std::to_string(names.size())] = label;
  }
  return {{"classifier", {{"id2label", names}, {"label2id", ids}}}};
}

}  // namespace

namespace internal {

std::string prompt_of(const ServedModel& served, const TeiRequest& asked) {
  try {
    return served.model->prompt(asked.prompt_name);
  } catch (const Error& error) {
    throw RequestError(422, error.what(), "prompt_name", "invalid_value");
  }
}

void embed_texts(Service& service, const ServedModel& served, const HttpReply& reply,
                 const RequestInputs& inputs, const TeiRequest& asked) {
  const std::string prompt = prompt_of(served, asked);
  ask_vectors({service, served, reply, "inputs", tei_error},
              texts_of(served, inputs, "inputs", reply), prompt,
              [&served, form = vector_form(asked)](const std::vector<Embedding>& embeddings) {
                std::vector<std::string> all;
                for (size_t i = 0; i < embeddings.size(); ++i)
                  all.push_back(numbers_json(text_vector(*served.model, embeddings[i], i, form)));
                return HttpResponse{.body = fmt::format("[{}]", fmt::join(all, ","))};
              });
}

void predict_labels(Service& service, const ServedModel& served, const HttpReply& reply,
                    const RequestInputs& inputs, const TeiRequest& asked) {
  if (served.model->answer_kind().is_tags())
    throw RequestError(422, "a tagger labels tokens; ask /v1/classify", "model", "invalid_value");
  ask({service, served, reply, "inputs", tei_error},
      label_requests(served, inputs.texts, asked.top),
      [&served, is_cut = asked.is_cut, top = asked.top,
       is_one = inputs.form == InputForm::text](const std::vector<Answer>& answers) {
        json all = json::array();
        for (size_t i = 0; i < answers.size(); ++i) {
          if (answers[i].truncated && !is_cut) throw too_long(*served.model, "inputs", i);
          all.push_back(labels_json(answers[i], top));
        }
        return HttpResponse{.body = json_text(is_one ? all[0] : all)};
      });
}

}  // namespace internal

const ServedModel& tei_model(const Service& service, const std::string& name) {
  return service.model_named(
      name.empty() && !service.models().empty() ? service.models().front().name : name);
}

HttpResponse tei_error(const RequestError& error) {
  const char* type = error.status() == 429   ? "Overloaded"
                     : error.status() == 503 ? "Unhealthy"
                     : error.status() >= 500 ? "Backend"
                                             : "Validation";
  // text-embeddings-inference reports a text that is too long as 413.
  const int status = error.code() == too_long_code ? 413 : error.status();
  return {.status = status, .body = json_text({{"error", error.what()}, {"error_type", type}})};
}

void answer_tei_embed(Service& service, const HttpRequest& request, const HttpReply& reply) {
  const auto asked = read_tei<TeiEmbedRequest>(request);
  embed_texts(service, tei_model(service, asked.model), reply, asked.inputs, asked);
}

void answer_tei_embed_all(Service& service, const HttpRequest& request, const HttpReply& reply) {
  const auto asked = read_tei<TeiEmbedAllRequest>(request);
  const ServedModel& served = tei_model(service, asked.model);
  ask_vectors({service, served, reply, "inputs", tei_error},
              texts_of(served, asked.inputs, "inputs", reply), prompt_of(served, asked),
              [&served, form = vector_form(asked)](const std::vector<Embedding>& embeddings) {
                std::vector<std::string> all;
                size_t numbers = 0;
                for (size_t i = 0; i < embeddings.size(); ++i) {
                  check_vector(*served.model, embeddings[i], i, form);
                  numbers += embeddings[i].vectors.size();
                  if (numbers > max_token_numbers)
                    throw RequestError(422,
                                       fmt::format("the vectors have over {} numbers; send fewer "
                                                   "or shorter inputs",
                                                   max_token_numbers),
                                       "inputs", "invalid_value");
                  all.push_back(token_vectors_json(embeddings[i]));
                }
                return HttpResponse{.body = fmt::format("[{}]", fmt::join(all, ","))};
              });
}

void answer_tei_similarity(Service& service, const HttpRequest& request, const HttpReply& reply) {
  const auto asked = read_tei<TeiSimilarityRequest>(request);
  const ServedModel& served = tei_model(service, asked.model);
  std::vector<std::string> texts = {asked.sentence};
  texts.insert(texts.end(), asked.others.begin(), asked.others.end());
  ask_vectors({service, served, reply, "inputs", tei_error}, texts, prompt_of(served, asked),
              [&served, form = vector_form(asked)](const std::vector<Embedding>& embeddings) {
                std::vector<std::vector<float>> vectors;
                for (size_t i = 0; i < embeddings.size(); ++i)
                  vectors.push_back(text_vector(*served.model, embeddings[i], i, form));
                json all = json::array();
                for (size_t i = 1; i < vectors.size(); ++i)
                  all.push_back(product(vectors[0], vectors[i]));
                return HttpResponse{.body = json_text(all)};
              });
}

void answer_tei_predict(Service& service, const HttpRequest& request, const HttpReply& reply) {
  const auto asked = read_tei<TeiPredictRequest>(request);
  predict_labels(service, tei_model(service, asked.model), reply, asked.inputs, asked);
}

void answer_tei_tokenize(Service& service, const HttpRequest& request, const HttpReply& reply) {
  auto asked = read_tei<TeiTokenizeRequest>(request);
  const ServedModel& served = text_model(service, tei_model(service, asked.model).name);
  const std::string prompt = asked.prompt_name.empty() ? "" : prompt_of(served, asked);
  size_t bytes = 0;
  for (std::string& text : asked.inputs.texts) bytes += text.insert(0, prompt).size();
  if (bytes > max_tokenised_bytes)
    throw RequestError(422,
                       fmt::format("the inputs have {} bytes; up to {} are tokenised at once, send "
                                   "fewer",
                                   bytes, max_tokenised_bytes),
                       "inputs", "invalid_value");
  service.compute(
      served, reply,
      [&served, reply, texts = std::move(asked.inputs.texts), adds_special = asked.adds_special] {
        ordered_json all = ordered_json::array();
        for (const std::string& text : texts) {
          if (reply.is_abandoned()) break;
          all.push_back(tokens_json(*served.model, text, adds_special));
        }
        return HttpResponse{.body = ordered_text(all)};
      },
      tei_error);
}

void answer_tei_decode(Service& service, const HttpRequest& request, const HttpReply& reply) {
  auto asked = read_tei<TeiDecodeRequest>(request);
  const ServedModel& served = text_model(service, tei_model(service, asked.model).name);
  if (!asked.skips_special)
    throw RequestError(422, "texts have no special tokens; leave skip_special_tokens out",
                       "skip_special_tokens", "invalid_value");
  service.compute(
      served, reply,
      [&served, reply, rows = std::move(asked.ids.ids)] {
        json all = json::array();
        for (const auto& ids : rows) {
          if (reply.is_abandoned()) break;
          all.push_back(served.model->decoded(ids));
        }
        return HttpResponse{.body = json_text(all)};
      },
      tei_error);
}

void answer_tei_info(Service& service, const HttpRequest&, const HttpReply& reply) {
  const ServedModel& served = tei_model(service, "");
  const ServiceOptions& options = service.options();
  reply.send({.body = json_text({{"model_id", served.name},
                                 {"model_sha", nullptr},
                                 {"model_dtype", name_of(options.model.weights)},
                                 {"model_type", model_type_json(*served.model)},
                                 {"max_concurrent_requests", options.queue},
                                 {"max_input_length", served.model->maximum_source_length()},
                                 {"max_batch_tokens", max_tokens_together},
                                 {"max_batch_requests", nullptr},
                                 {"tokenization_workers", served.model->threads()},
                                 {"max_client_batch_size", static_cast<int64_t>(max_texts)},
                                 {"auto_truncate", false},
                                 {"version", options.version}})});
}

std::vector<RequestField> tei_embed_fields() { return fields_of<TeiEmbedRequest>(); }
std::vector<RequestField> tei_embed_all_fields() { return fields_of<TeiEmbedAllRequest>(); }
std::vector<RequestField> tei_similarity_fields() { return fields_of<TeiSimilarityRequest>(); }
std::vector<RequestField> tei_predict_fields() { return fields_of<TeiPredictRequest>(); }
std::vector<RequestField> tei_tokenize_fields() { return fields_of<TeiTokenizeRequest>(); }
std::vector<RequestField> tei_decode_fields() { return fields_of<TeiDecodeRequest>(); }

}  // namespace attend
