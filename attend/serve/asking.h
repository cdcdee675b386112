#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/inference/model.h"
#include "attend/serve/answer_queue.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/service.h"

namespace attend {

// A request that is answered by a model, and what its client reads.
struct Asking {
  Service& service;
  const ServedModel& served;
  const HttpReply& reply;
  const char* field = "texts";  // of the request, which holds the sources
  ErrorForm error = openai_error;
};

// Puts the question into the model's queue and answers the request with what `respond` makes of the
// answers, or with the RequestError that it throws. A source that could not be read is an error
// (422), and so is a full queue (429) and, for a model that reads images or sounds, a source that
// does not hold them (data/embedded_file.h): no file is opened that a request names. Sets the
// question's functions.
void ask(const Asking& asking, Question question,
         std::function<HttpResponse(const std::vector<Answer>&)> respond);

// The same of the vectors of texts.
void ask_vectors(const Asking& asking, std::vector<std::string> texts,
                 std::function<HttpResponse(const std::vector<Embedding>&)> respond);

// Puts a question with all its functions into the model's queue, or tells that it is full (429).
// RequestError (422) on one whose answers may be too long together.
void put(const Asking& asking, Question question);

// What a client is told of a RequestError, of another error of the library (422), and of one of the
// model or the system (500).
RequestError failure_of(const std::exception& error);
// Throws RequestError (500) if the model computed numbers that are not finite, else (422).
[[noreturn]] void refuse_source(const std::string& field, size_t index, const std::string& error,
                                bool is_diverged);
// Throws the error that the Answer or Embedding of one source has, if any: 422 if the source could
// not be read, 500 if the model computed numbers that are not finite.
template <class Result>
void check_result(const std::string& field, size_t index, const Result& result) {
  if (!result.error.empty()) refuse_source(field, index, result.error, result.is_diverged);
}
// That a text is longer than the model reads (400), in words that clients of OpenAI look for, and
// its code.
constexpr const char* too_long_code = "context_length_exceeded";
RequestError too_long(const Model& model, const std::string& field, size_t index);

// The texts of inputs, which may be written as token ids. RequestError (422) on ids of no text, and
// if `reply` is abandoned.
std::vector<std::string> texts_of(const ServedModel& served, const RequestInputs& inputs,
                                  const char* field, const HttpReply& reply);

// RequestError (422) where the model reads images or sounds and the source does not hold them: no
// file is opened that a request names. `name` is the source's, for the message.
void check_source(const ServedModel& served, const std::string& source, const std::string& name,
                  const std::string& field);

// The model of that name. RequestError where there is none, and (422) on one that reads images or
// sounds.
const ServedModel& text_model(const Service& service, const std::string& name);

// {"model", "answers"}
HttpResponse answers_response(const ServedModel& served, const nlohmann::json& answers);

// JSON in UTF-8, whatever bytes its texts have.
std::string json_text(const nlohmann::json& value);

}  // namespace attend
