#include "attend/serve/asking.h"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

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
      for (size_t i = 0; i < results.size(); ++i)
        if (!results[i].error.empty())
          throw RequestError(422, fmt::format("{}[{}]: {}", field, i, results[i].error), field,
                             "unreadable");
      reply.send(respond(results));
    } catch (const RequestError& error) {
      reply.send(form(error));
    }
  };
}

void put(const Asking& asking, Question question) {
  const HttpReply& reply = asking.reply;
  question.is_abandoned = [reply] { return reply.is_abandoned(); };
  question.failed = [reply, form = asking.error](const std::exception& error) {
    const int status = dynamic_cast<const Error*>(&error) != nullptr ? 422 : 500;
    reply.send(form(RequestError(status, error.what())));
  };
  if (!asking.served.queue->add(std::move(question))) reply.send(full_response(asking.error));
}

}  // namespace

void ask(const Asking& asking, Question question,
         std::function<HttpResponse(const std::vector<Answer>&)> respond) {
  question.answered = responder(asking, std::move(respond));
  put(asking, std::move(question));
}

void ask_vectors(const Asking& asking, std::vector<std::string> texts,
                 std::function<HttpResponse(const std::vector<Embedding>&)> respond) {
  Question question;
  question.sources = std::move(texts);
  question.options = "vectors";
  question.embedded = responder(asking, std::move(respond));
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

const ServedModel& text_model(const Service& service, const std::string& name) {
  const ServedModel& served = service.model_named(name);
  if (served.model->has_source_image())
    throw RequestError(422, "the model reads images or sounds, and the server takes texts alone",
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
