#include "attend/serve/service.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "attend/serve/asking.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/routes.h"

namespace attend {
namespace {

// Several readers prevent a large body from blocking small ones. A worker computes in addition to
// the models' threads.
constexpr size_t reader_threads = 2, worker_threads = 1;

std::string event_word(HttpEvent::Kind kind) {
  switch (kind) {
    case HttpEvent::Kind::answered:
      return "request";
    case HttpEvent::Kind::refused:
      return "refused";
    default:
      return "gone";
  }
}

std::string time_now() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

std::string log_line(const HttpEvent& event) {
  return fmt::format("{} {} {} {} {} {} {:.6f} s {} B{}{}", time_now(), event_word(event.kind),
                     event.id.empty() ? "-" : event.id, event.method.empty() ? "-" : event.method,
                     event.target.empty() ? "-" : event.target, event.status, event.seconds,
                     event.sent, event.reason.empty() ? "" : ": ", event.reason);
}

std::string log_json(const HttpEvent& event) {
  nlohmann::json line = {{"time", time_now()},
                         {"event", event_word(event.kind)},
                         {"status", event.status},
                         {"seconds", event.seconds},
                         {"sent", event.sent}};
  if (!event.method.empty())
    line.update({{"id", event.id},
                 {"method", event.method},
                 {"target", event.target},
                 {"length", event.received}});
  if (!event.reason.empty()) line["reason"] = event.reason;
  return line.dump();
}

void run_on(WorkThreads& threads, const HttpReply& reply, ErrorForm form,
            std::function<void()> work) {
  const bool is_taken = threads.add([reply, form, work = std::move(work)] {
    if (reply.is_abandoned()) return;
    try {
      work();
    } catch (const std::exception& error) {
      reply.send(form(failure_of(error)));
    }
  });
  if (!is_taken) reply.send(full_response(form));
}

std::function<void()> sending(const HttpReply& reply, std::function<HttpResponse()> work) {
  return [reply, work = std::move(work)] { reply.send(work()); };
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      metrics_(options_.version),
      readers_(reader_threads, std::numeric_limits<size_t>::max()),
      workers_(worker_threads, options_.queue) {
  options_.model.skip_bad = true;
}

void Service::load() {
  for (const auto& [name, folder] : options_.folders) {
    ServedModel served{.name = name};
    for (const ServedModel& other : models_)
      if (other.name == served.name)
        fail("two models are called {}; give one as NAME=FOLDER", in_quotes(served.name));
    served.model = std::make_unique<const Model>(folder, options_.model);
    served.loaded = std::time(nullptr);
    served.queue = std::make_unique<AnswerQueue>(
        [&model = *served.model](const Model::Arrivals& arrivals) {
          model.answer_arriving(arrivals);
        },
        options_.queue,
        [this](const std::vector<double>& queued_seconds, size_t together) {
          metrics_.count_batch(queued_seconds, together);
        },
        static_cast<size_t>(served.model->threads()),
        [&model = *served.model](const std::vector<std::string>& sources,
                                 const std::string& prompt) {
          return model.embed(sources, prompt);
        },
        static_cast<size_t>(served.model->maximum_source_length()));
    served.worker = std::make_unique<WorkThreads>(worker_threads, options_.queue);
    models_.push_back(std::move(served));
  }
  const std::lock_guard lock(early_mutex_);
  is_loaded_ = true;
  for (auto& work : early_) readers_.add(std::move(work));
  early_.clear();
}

// Returns false if the models are loaded.
bool Service::keep_until_loaded(std::function<void()>& work) {
  const std::lock_guard lock(early_mutex_);
  if (!is_loaded_) early_.push_back(std::move(work));
  return !is_loaded_;
}

bool Service::is_idle() const {
  if (!readers_.is_idle() || !workers_.is_idle()) return false;
  return !is_loaded_ || std::all_of(models_.begin(), models_.end(), [](const ServedModel& served) {
    return served.queue->is_idle() && served.worker->is_idle();
  });
}

std::optional<HttpResponse> Service::judge(const HttpHead& head) {
  return head_refusal(*this, head);
}

void Service::handle(HttpRequest request, const HttpReply& reply) {
  const Route* route = admitting_route(*this, request.head, reply);
  if (route == nullptr) return;
  const bool must_wait = route->needs != RouteNeeds::nothing && !is_loaded_;
  if (request.body.empty() && !must_wait) return answer_by_route(*route, *this, request, reply);
  // Parsing a megabyte of JSON here would delay other requests.
  std::function<void()> work = [this, route, request = std::move(request), reply] {
    if (reply.is_abandoned()) return;
    try {
      answer_by_route(*route, *this, request, reply);
    } catch (const std::exception& error) {
      reply.send(openai_error(RequestError(500, error.what())));
    }
  };
  if (must_wait && keep_until_loaded(work)) return;
  readers_.add(std::move(work));
}

void Service::compute(const HttpReply& reply, std::function<HttpResponse()> work) {
  run_on(workers_, reply, openai_error, sending(reply, std::move(work)));
}

void Service::compute(const ServedModel& served, const HttpReply& reply,
                      std::function<HttpResponse()> work, ErrorForm error) {
  run_on(*served.worker, reply, error, sending(reply, std::move(work)));
}

void Service::run(const ServedModel& served, const HttpReply& reply, std::function<void()> work,
                  ErrorForm error) {
  run_on(*served.worker, reply, error, std::move(work));
}

void Service::watch(const HttpEvent& event) {
  if (event.kind != HttpEvent::Kind::left)
    metrics_.count_request(route_label(event.path), event.status, event.seconds);
  if (options_.log) options_.log(options_.logs_json ? log_json(event) : log_line(event));
}

const ServedModel& Service::model_named(const std::string& name) const {
  if (name.empty()) {
    if (models_.size() == 1) return models_[0];
    throw RequestError(422, "several models are served; name one", "model", "missing_field");
  }
  for (const ServedModel& served : models_)
    if (served.name == name) return served;
  throw RequestError(404, fmt::format("no model {}; /v1/models lists the models", in_quotes(name)),
                     "model", "model_not_found");
}

bool Service::is_full() const {
  return !models_.empty() &&
         std::all_of(models_.begin(), models_.end(),
                     [](const ServedModel& one) { return one.queue->is_full(); });
}

size_t Service::queue_size() const {
  if (!is_loaded_) return 0;
  size_t size = 0;
  for (const ServedModel& served : models_) size += served.queue->size() + served.worker->size();
  return size;
}

}  // namespace attend
