#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/inference/model.h"
#include "attend/serve/answer_queue.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/service.h"

namespace attend {

// A request that a model answers, and the reply to its client.
struct Asking {
  Service& service;
  const ServedModel& served;
  const HttpReply& reply;
  const char* field = "texts";  // field of the request that holds the sources
  ErrorForm error = openai_error;
};

// Queues requests for the model and answers the client with the result of `respond`, or with the
// RequestError that it throws.
// Errors: 422 on a source that cannot be read; 429 on a full queue. If the model reads images or
// sounds, also 422 on a source that does not hold one (files/embedded_file.h): the server opens no
// file that a request names.
void ask(const Asking& asking, std::vector<Request> requests,
         std::function<HttpResponse(const std::vector<Answer>&)> respond);

// Like ask(), for the vectors of texts after a prompt, see Model::embed().
void ask_vectors(const Asking& asking, const std::vector<std::string>& texts,
                 const std::string& prompt,
                 std::function<HttpResponse(const std::vector<Embedding>&)> respond);

// Queues requests with their sink, or replies 429 if the queue is full. RequestError (422) if their
// answers together may be too long.
void put(const Asking& asking, ClientRequests client);

// Results of a client's requests, which come from several threads.
template <class Result>
class GatheredResults {
 public:
  explicit GatheredResults(size_t count) : results_(count), left_(count) {}

  // Returns whether all results are there.
  bool put(size_t number, Result result) {
    const std::lock_guard lock(mutex_);
    results_[number] = std::move(result);
    return --left_ == 0;
  }
  const std::vector<Result>& all() const { return results_; }

 private:
  std::mutex mutex_;
  std::vector<Result> results_;
  size_t left_;
};

// The error for the client: a RequestError itself, 422 for other errors of the library, and 500 for
// errors of the model or the system.
RequestError failure_of(const std::exception& error);
// Throws RequestError: 500 if the model computed numbers that are not finite, else 422.
[[noreturn]] void refuse_source(const std::string& field, size_t index, const std::string& error,
                                bool is_diverged);
// Throws the error of one source's Answer or Embedding, if any: 422 if the source could not be
// read, 500 if the model computed numbers that are not finite.
template <class Result>
void check_result(const std::string& field, size_t index, const Result& result) {
  if (!result.error.empty()) refuse_source(field, index, result.error, result.is_diverged);
}
// Code of too_long(), and the error (400) for a text longer than the model reads, in words that
// OpenAI's clients look for.
constexpr const char* too_long_code = "context_length_exceeded";
RequestError too_long(const Model& model, const std::string& field, size_t index);

// Returns the inputs as texts; token ids are decoded. RequestError (422) on ids without a text, and
// if `reply` is abandoned.
std::vector<std::string> texts_of(const ServedModel& served, const RequestInputs& inputs,
                                  const char* field, const HttpReply& reply);

// RequestError (422) if the model reads images or sounds and the source does not hold one: the
// server opens no file that a request names. `name`: name of the source in the message.
void check_source(const ServedModel& served, const std::string& source, const std::string& name,
                  const std::string& field);

// The model of that name. RequestError if it does not exist, and (422) if it reads images or
// sounds.
const ServedModel& text_model(const Service& service, const std::string& name);

// The fields for the languages of texts and answers of one request, with these names.
std::vector<RequestField> language_fields(SearchOptions& search, const std::string& from = "from",
                                          const std::string& to = "to");

// Body: {"model", "answers"}.
HttpResponse answers_response(const ServedModel& served, const nlohmann::json& answers);

// JSON in UTF-8; invalid bytes in texts are replaced.
std::string json_text(const nlohmann::json& value);
std::string ordered_text(const nlohmann::ordered_json& value);  // members in their order

}  // namespace attend
