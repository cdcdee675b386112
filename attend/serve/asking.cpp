#include "attend/serve/asking.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

#include "attend/decode/not_a_number.h"
#include "attend/files/embedded_file.h"
#include "attend/text/units.h"

namespace attend {
namespace {

int64_t token_count(const std::vector<Answer>& answers) {
  size_t count = 0;
  for (const Answer& answer : answers) {
    count += answer.source.size();
    for (const Candidate& candidate : answer.candidates) count += candidate.tokens.size();
  }
  return static_cast<int64_t>(count);
}

int64_t token_count(const std::vector<Embedding>& embeddings) {
  size_t count = 0;
  for (const Embedding& embedding : embeddings) count += embedding.tokens.size();
  return static_cast<int64_t>(count);
}

// Gathers the results of a client's requests, Answers or Embeddings, and responds.
template <class Result>
class Responder : public ClientSink {
 public:
  using Respond = std::function<HttpResponse(const std::vector<Result>&)>;

  Responder(const Asking& asking, size_t requests, Respond respond)
      : metrics_(asking.service.metrics()),
        reply_(asking.reply),
        field_(asking.field),
        form_(asking.error),
        respond_(std::move(respond)),
        results_(requests) {}

  bool cancelled(size_t /*number*/) override { return has_failed_ || reply_.is_abandoned(); }
  void done(size_t number, Answer answer) override { take(number, std::move(answer)); }
  void embedded(size_t number, Embedding embedding) override { take(number, std::move(embedding)); }
  void failed(const std::exception& error) override {
    has_failed_ = true;
    reply_.send(form_(failure_of(error)));
  }

 private:
  template <class Taken>
  void take(size_t number, Taken result) {
    if constexpr (std::is_same_v<Taken, Result>) {
      // Results of cancelled requests are not answers.
      if (!results_.put(number, std::move(result)) || cancelled(number)) return;
      const std::vector<Result>& all = results_.all();
      metrics_.count_tokens(token_count(all));
      for (size_t i = 0; i < all.size(); ++i) check_result(field_, i, all[i]);
      reply_.send(respond_(all));
    }
  }

  ServerMetrics& metrics_;
  const HttpReply reply_;
  const char* field_;
  const ErrorForm form_;
  const Respond respond_;
  GatheredResults<Result> results_;
  std::atomic<bool> has_failed_ = false;
};

// Checks that no source names a file and that no text is too long to tokenise quickly.
void check_sources(const Asking& asking, const std::vector<Request>& requests) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string& source = requests[i].source;
    check_source(asking.served, source, fmt::format("{}[{}]", asking.field, i), asking.field);
    if (!asking.served.model->has_source_image() && source.size() > max_text_bytes)
      throw RequestError(422,
                         fmt::format("{}[{}] has {} bytes; a text has at most {}, shorten it",
                                     asking.field, i, source.size(), max_text_bytes),
                         asking.field, "invalid_value");
  }
}

// Limits of all answers to a request together: tokens, and attention weights kept during the
// computation.
constexpr int64_t max_tokens = int64_t{64} * 4096, max_weights = int64_t{1} << 26;

// Maximum number of tokens of a source, from its bytes; special tokens may be added.
int64_t source_tokens(const Model& model, const std::string& source) {
  const int64_t maximum = model.maximum_source_length();
  return model.has_source_image() ? maximum : std::min(std::ssize(source) + 8, maximum);
}

int64_t answer_count(const SearchOptions& search) {
  return search.sampling ? search.nbest : search.beam;
}

// RequestError if the answers may have too many tokens or keep too many weights.
void check_work(const Asking& asking, const std::vector<Request>& requests) {
  const Model& model = *asking.served.model;
  const SearchOptions& search = requests.at(0).options;
  const bool keeps_weights = search.with_weights || search.coverage_penalty > 0;
  int64_t tokens = 0, weights = 0;
  for (const Request& request : requests) {
    const int64_t length = source_tokens(model, request.source);
    const int64_t all = answer_count(search) * model.longest_answer(length, search);
    tokens += all;
    weights += keeps_weights ? all * length : 0;
  }
  const auto check = [&](int64_t count, int64_t maximum, const char* kind) {
    if (count > maximum)
      throw RequestError(422,
                         fmt::format("the answers may have {} {} together; a request has at most "
                                     "{}, ask for fewer or shorter answers",
                                     count, kind, maximum),
                         asking.field, "invalid_value");
  };
  check(tokens, max_tokens, "tokens");
  check(weights, max_weights, "attention weights");
}

// Whether the answers probably take long. Expected length: the maximum if the request limits the
// length or sources are images or sounds, otherwise about the length of the source.
bool is_long(const Model& model, const std::vector<Request>& requests) {
  constexpr int64_t short_tokens = 8192, bytes_per_token = 4;
  const SearchOptions& search = requests.at(0).options;
  int64_t tokens = 0;
  for (const Request& request : requests) {
    const int64_t maximum = model.longest_answer(source_tokens(model, request.source), search);
    const bool is_limited = search.maximum_length > 0 || model.has_source_image();
    tokens +=
        is_limited ? maximum : std::min(maximum, std::ssize(request.source) / bytes_per_token + 10);
  }
  return tokens * answer_count(search) > short_tokens;
}

}  // namespace

RequestError failure_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const RequestError*>(&error)) return *own;
  const bool is_of_the_model = dynamic_cast<const NotANumber*>(&error) != nullptr;
  const bool is_of_the_request = dynamic_cast<const Error*>(&error) != nullptr && !is_of_the_model;
  return {is_of_the_request ? 422 : 500, error.what()};
}

void refuse_source(const std::string& field, size_t index, const std::string& error,
                   bool is_diverged) {
  throw RequestError(is_diverged ? 500 : 422, fmt::format("{}[{}]: {}", field, index, error), field,
                     is_diverged ? "" : "unreadable");
}

void put(const Asking& asking, ClientRequests client) {
  if (!client.wants_vectors) {
    check_work(asking, client.requests);
    client.is_long = is_long(*asking.served.model, client.requests);
  }
  if (!asking.served.queue->add(std::move(client))) asking.reply.send(full_response(asking.error));
}

void ask(const Asking& asking, std::vector<Request> requests,
         std::function<HttpResponse(const std::vector<Answer>&)> respond) {
  check_sources(asking, requests);
  auto sink = std::make_shared<Responder<Answer>>(asking, requests.size(), std::move(respond));
  put(asking, {.requests = std::move(requests), .sink = std::move(sink)});
}

void ask_vectors(const Asking& asking, const std::vector<std::string>& texts,
                 const std::string& prompt,
                 std::function<HttpResponse(const std::vector<Embedding>&)> respond) {
  std::vector<Request> requests = requests_of(texts, {});
  check_sources(asking, requests);
  auto sink = std::make_shared<Responder<Embedding>>(asking, texts.size(), std::move(respond));
  put(asking, {.requests = std::move(requests),
               .sink = std::move(sink),
               .wants_vectors = true,
               .prompt = prompt});
}

std::vector<std::string> texts_of(const ServedModel& served, const RequestInputs& inputs,
                                  const char* field, const HttpReply& reply) {
  std::vector<std::string> texts = inputs.texts;
  try {
    for (const auto& ids : inputs.ids) {
      if (reply.is_abandoned()) fail("the client has disconnected");
      texts.push_back(served.model->source_text(ids));
    }
  } catch (const Error& error) {
    throw RequestError(422, fmt::format("{}[{}]: {}", field, texts.size(), error.what()), field,
                       "invalid_value");
  }
  return texts;
}

RequestError too_long(const Model& model, const std::string& field, size_t index) {
  return {400,
          fmt::format("This model's maximum context length is {} tokens, and {}[{}] has more; "
                      "shorten it",
                      model.maximum_source_length(), field, index),
          field, too_long_code};
}

void check_source(const ServedModel& served, const std::string& source, const std::string& name,
                  const std::string& field) {
  if (!served.model->has_source_image()) return;
  // A set consists of several files, separated by blanks.
  const std::vector<std::string_view> words = split_words(source);
  if (words.empty() || (holds_file(source) && std::all_of(words.begin(), words.end(), holds_file)))
    return;
  throw RequestError(422,
                     fmt::format("{} must be the image or sound itself, as "
                                 "data:image/png;base64, and its bytes in base64",
                                 name),
                     field, "invalid_value");
}

const ServedModel& text_model(const Service& service, const std::string& name) {
  const ServedModel& served = service.model_named(name);
  if (served.model->has_source_image())
    throw RequestError(422, "the model reads images or sounds, and this path takes only texts",
                       "model", "invalid_value");
  return served;
}

std::vector<RequestField> language_fields(SearchOptions& search, const std::string& from,
                                          const std::string& to) {
  const Settings settings = search.settings();
  std::vector<RequestField> fields;
  for (const auto& [key, name] : {std::pair{"from", from}, {"to", to}}) {
    fields.push_back(request_field(setting_of(settings, key), 0, /*has_default=*/false));
    fields.back().name = name;
  }
  return fields;
}

HttpResponse answers_response(const ServedModel& served, const nlohmann::json& answers) {
  return {.body = ordered_text({{"model", served.name}, {"answers", answers}})};
}

std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ordered_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace attend
