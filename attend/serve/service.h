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

// A folder of a model, and the name that requests call the model by.
struct ModelFolder {
  std::string name, folder;
};

// A model that is served.
struct ServedModel {
  std::string name;
  int64_t loaded = 0;  // seconds since 1970
  std::unique_ptr<const Model> model = {};
  std::unique_ptr<AnswerQueue> queue = {};
  std::unique_ptr<WorkThreads> worker = {};  // for what takes long
};

struct ServiceOptions {
  std::vector<ModelFolder> folders = {};  // of the models
  ModelOptions model = {};                // skip_bad is set
  size_t queue = 256;  // requests that wait for each model, or for none; more are told 429
  // For an answer that is streamed, from the request to its end.
  std::chrono::milliseconds stream_time{600000};
  std::vector<std::string> examples = {};  // texts that the page offers
  std::string key = {};                    // that clients must send; empty: none
  std::string version = {};
  // Requests that need models wait until they are loaded; otherwise they get a 503.
  bool waits_for_models = false;
  // Called on the server's thread for each request and each one that was refused, where it is set:
  // a line of JSON, or one for people.
  std::function<void(const std::string&)> log = {};
  bool logs_json = false;
  std::function<int64_t()> lost_log_lines = {};  // lines that could not be written; optional
};

// What `attend serve` answers: a table of routes (attend/serve/routes.h) over models. Nothing that
// a request says is opened or loaded.
class Service {
 public:
  explicit Service(ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Loads the models; requests that need one wait or get a 503 until then. Errors: those of Model,
  // and two folders of one name.
  void load();
  // From here on it is told not to be ready, and goes on answering.
  void begin_drain() { is_draining_ = true; }
  bool is_loaded() const { return is_loaded_; }
  bool is_idle() const;  // there is nothing to answer

  // For HttpServer. `judge` refuses what the head is enough to refuse, whatever the load. `handle`
  // refuses by the load, so that an overload costs little; other bodies are read, and answered, on
  // another thread.
  std::optional<HttpResponse> judge(const HttpHead& head);
  void handle(HttpRequest request, const HttpReply& reply);
  void watch(const HttpEvent& event);

  // For the routes.
  const std::vector<ServedModel>& models() const { return models_; }
  bool is_ready() const { return is_loaded_ && !is_draining_; }
  const std::string& key() const { return options_.key; }
  const ServiceOptions& options() const { return options_; }
  // The model of that name; where there is one model the name may be empty. RequestError (404)
  // where there is none.
  const ServedModel& model_named(const std::string& name) const;
  // Answers with what `work` computes without a model's queue, or the error that it throws, on a
  // thread of its own. 429 where too many such wait.
  void compute(const HttpReply& reply, std::function<HttpResponse()> work);
  // The same on a thread of the model's, with errors in the form `error`.
  void compute(const ServedModel& served, const HttpReply& reply,
               std::function<HttpResponse()> work, ErrorForm error = openai_error);
  // Has the model's thread call `work`, which answers by itself unless it throws.
  void run(const ServedModel& served, const HttpReply& reply, std::function<void()> work,
           ErrorForm error = openai_error);
  ServerMetrics& metrics() { return metrics_; }
  size_t queue_size() const;
  // Whether no model's queue has room. For models that are loaded.
  bool is_full() const;

 private:
  bool keep_until_loaded(std::function<void()>& work);

  ServiceOptions options_;
  ServerMetrics metrics_;
  std::vector<ServedModel> models_;  // not changed once is_loaded_
  std::atomic<bool> is_loaded_ = false, is_draining_ = false;
  std::mutex early_mutex_;  // guards early_ and the change of is_loaded_
  std::vector<std::function<void()>> early_;
  WorkThreads readers_, workers_;  // of JSON, and of compute()
};

}  // namespace attend
