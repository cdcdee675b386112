#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attend/http/http_server.h"
#include "attend/inference/model.h"
#include "attend/serve/answer_queue.h"
#include "attend/serve/metrics.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/work_threads.h"

namespace attend {

// Folder of a model, and its name in requests.
struct ModelFolder {
  std::string name, folder;
};

// A served model.
struct ServedModel {
  std::string name;
  int64_t loaded = 0;  // Unix time in seconds
  std::unique_ptr<const Model> model = {};
  std::unique_ptr<AnswerQueue> queue = {};
  std::unique_ptr<WorkThreads> worker = {};  // for long computations
};

struct ServiceOptions {
  std::vector<ModelFolder> folders = {};
  ModelOptions model = {};  // skip_bad is set
  size_t queue = 256;       // waiting requests per model, and without a model; more get 429
  // Time limit of a streamed answer, from the request to its end.
  std::chrono::milliseconds stream_time{600000};
  std::vector<std::string> examples = {};  // example texts of the page
  std::string key = {};                    // required of clients; empty: none
  std::string version = {};
  // Requests that need models wait until they are loaded; otherwise they get 503.
  bool waits_for_models = false;
  // Called on the server's thread for each answered or refused request and each disconnected
  // client, with one line of JSON or plain text; optional.
  std::function<void(const std::string&)> log = {};
  bool logs_json = false;
  std::function<int64_t()> lost_log_lines = {};  // lines that could not be written; optional
};

// The service of `attend serve`: a table of routes (attend/serve/routes.h) over models. It opens
// and loads no file that a request names.
class Service {
 public:
  explicit Service(ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Loads the models; until then requests that need one wait or get 503. Errors: as Model, and if
  // two folders have the same name.
  void load();
  // Reports not ready from now on, but still answers requests.
  void begin_drain() { is_draining_ = true; }
  bool is_loaded() const { return is_loaded_; }
  bool is_idle() const;  // nothing waits or is being answered

  // For HttpServer. `judge` refuses requests by their head, independent of the load. `handle` also
  // refuses by the load, before it parses the body. Bodies are parsed, and such requests answered,
  // on another thread.
  std::optional<HttpResponse> judge(const HttpHead& head);
  void handle(HttpRequest request, const HttpReply& reply);
  void watch(const HttpEvent& event);

  // For the routes.
  const std::vector<ServedModel>& models() const { return models_; }
  bool is_ready() const { return is_loaded_ && !is_draining_; }
  const std::string& key() const { return options_.key; }
  const ServiceOptions& options() const { return options_; }
  // The model of that name; the name may be empty if there is one model. RequestError: 404 if the
  // model does not exist, 422 if the name is empty and there are several models.
  const ServedModel& model_named(const std::string& name) const;
  // Answers with the result or exception of `work`, which runs on the service's own thread, without
  // a model's queue. 429 if too many such requests wait.
  void compute(const HttpReply& reply, std::function<HttpResponse()> work);
  // The same on a thread of the model, with errors in the form `error`.
  void compute(const ServedModel& served, const HttpReply& reply,
               std::function<HttpResponse()> work, ErrorForm error = openai_error);
  // Runs `work` on the model's thread; `work` replies itself unless it throws.
  void run(const ServedModel& served, const HttpReply& reply, std::function<void()> work,
           ErrorForm error = openai_error);
  ServerMetrics& metrics() { return metrics_; }
  size_t queue_size() const;
  // Whether all models' queues are full. Requires loaded models.
  bool is_full() const;

 private:
  bool keep_until_loaded(std::function<void()>& work);

  ServiceOptions options_;
  ServerMetrics metrics_;
  std::vector<ServedModel> models_;  // constant after is_loaded_
  std::atomic<bool> is_loaded_ = false, is_draining_ = false;
  std::mutex early_mutex_;  // guards early_ and the change of is_loaded_
  std::vector<std::function<void()>> early_;
  WorkThreads readers_, workers_;  // readers of JSON; workers of compute()
};

}  // namespace attend
