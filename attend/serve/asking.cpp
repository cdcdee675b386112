#include "attend/serve/asking.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "attend/data/embedded_file.h"
#include "attend/data/units.h"
#include "attend/decode/not_a_number.h"

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

// What a question calls with Answers or Embeddings.
template <class Result>
std::function<void(const std::vector<Result>&)> responder(
    const Asking& asking, std::function<HttpResponse(const std::vector<Result>&)> respond) {
  return [&metrics = asking.service.metrics(), reply = asking.reply, field = asking.field,
          form = asking.error, respond = std::move(respond)](const std::vector<Result>& results) {
    metrics.count_tokens(token_count(results));
    try {
      for (size_t i = 0; i < results.size(); ++i) check_read(field, i, results[i].error);
      reply.send(respond(results));
    } catch (const RequestError& error) {
      reply.send(form(error));
    }
  };
}

// No file is opened that a request names.
void check_sources(const Asking& asking, const std::vector<std::string>& sources) {
  for (size_t i = 0; i < sources.size(); ++i)
    check_source(asking.served, sources[i], fmt::format("{}[{}]", asking.field, i), asking.field);
}

void tell_of_failures(const Asking& asking, Question& question) {
  const HttpReply& reply = asking.reply;
  question.is_abandoned = [reply] { return reply.is_abandoned(); };
  question.failed = [reply, form = asking.error](const std::exception& error) {
    reply.send(form(failure_of(error)));
  };
}

}  // namespace

RequestError failure_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const RequestError*>(&error)) return *own;
  const bool is_of_the_model = dynamic_cast<const NotANumber*>(&error) != nullptr;
  const bool is_of_the_request = dynamic_cast<const Error*>(&error) != nullptr && !is_of_the_model;
  return {is_of_the_request ? 422 : 500, error.what()};
}

void check_read(const std::string& field, size_t index, const std::string& error) {
  if (!error.empty())
    throw RequestError(422, fmt::format("{}[{}]: {}", field, index, error), field, "unreadable");
}

void put(const Asking& asking, Question question) {
  if (!asking.served.queue->add(std::move(question)))
    asking.reply.send(full_response(asking.error));
}

void ask(const Asking& asking, Question question,
         std::function<HttpResponse(const std::vector<Answer>&)> respond) {
  check_sources(asking, question.sources);
  question.answered = responder(asking, std::move(respond));
  tell_of_failures(asking, question);
  put(asking, std::move(question));
}

void ask_vectors(const Asking& asking, std::vector<std::string> texts,
                 std::function<HttpResponse(const std::vector<Embedding>&)> respond) {
  check_sources(asking, texts);
  Question question;
  question.sources = std::move(texts);
  question.options = "vectors";
  question.embedded = responder(asking, std::move(respond));
  tell_of_failures(asking, question);
  put(asking, std::move(question));
}

std::vector<std::string> texts_of(const ServedModel& served, const RequestInputs& inputs,
                                  const char* field) {
  std::vector<std::string> texts = inputs.texts;
  try {
    for (const auto& ids : inputs.ids) texts.push_back(served.model->source_text(ids));
  } catch (const Error& error) {
    throw RequestError(422, fmt::format("{}[{}]: {}", field, texts.size(), error.what()), field,
                       "invalid_value");
  }
  return texts;
}

RequestError too_long(const Model& model, const std::string& field, size_t index) {
  return {422,
          fmt::format("{}[{}] has more than the {} tokens that the model reads; shorten it", field,
                      index, model.maximum_source_length()),
          field, too_long_code};
}

void check_source(const ServedModel& served, const std::string& source, const std::string& name,
                  const std::string& field) {
  if (!served.model->has_source_image()) return;
  // A set has several, with blanks between.
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
    throw RequestError(422, "the model reads images or sounds, and this path takes texts alone",
                       "model", "invalid_value");
  return served;
}

HttpResponse answers_response(const ServedModel& served, const nlohmann::json& answers) {
  return {.body = fmt::format(R"({{"model":{},"answers":{}}})", json_text(served.name),
                              json_text(answers))};
}

std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace attend
