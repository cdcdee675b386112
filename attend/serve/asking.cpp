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

void check_read(const std::vector<Answer>& answers, const std::string& field) {
  for (size_t i = 0; i < answers.size(); ++i)
    if (!answers[i].error.empty())
      throw RequestError(422, fmt::format("{}[{}]: {}", field, i, answers[i].error), field,
                         "unreadable");
}

}  // namespace

void ask(const Asking& asking, Question question,
         std::function<HttpResponse(const std::vector<Answer>&)> respond) {
  const HttpReply& reply = asking.reply;
  question.is_abandoned = [reply] { return reply.is_abandoned(); };
  question.answered = [&metrics = asking.service.metrics(), reply, field = asking.field,
                       error = asking.error,
                       respond = std::move(respond)](const std::vector<Answer>& answers) {
    metrics.count_tokens(token_count(answers));
    try {
      check_read(answers, field);
      reply.send(respond(answers));
    } catch (const RequestError& refusal) {
      reply.send(error(refusal));
    }
  };
  question.failed = [reply, error = asking.error](const std::exception& failure) {
    const int status = dynamic_cast<const Error*>(&failure) != nullptr ? 422 : 500;
    reply.send(error(RequestError(status, failure.what())));
  };
  if (!asking.served.queue->add(std::move(question))) reply.send(full_response(asking.error));
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
