#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/named_option.h"
#include "attend/http/http_server.h"
#include "attend/serve/service.h"

namespace attend {
namespace {

enum class LogForm { lines, json };
EnumNames names_of(LogForm) { return {"lines", "json"}; }

struct ServeOptions {
  HttpOptions http{.port = 8080};
  ServiceOptions service;
  std::string key_file;
  LogForm log = LogForm::lines;
  double deadline = 60, drain = 0;  // seconds
};

HttpOptions::Time milliseconds(double seconds) {
  return HttpOptions::Time(static_cast<int64_t>(seconds * 1000));
}

// The file's first line.
std::string read_key(const std::string& path) {
  std::string key = read_file(path, 4096);
  key.resize(std::min(key.size(), key.find_first_of("\r\n")));
  if (key.empty() ||
      !std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; }))
    fail("{}: its first line must be a key of printable ASCII without blanks", path);
  return key;
}

// A server and its models, from the first connection to the last.
class Serving {
 public:
  explicit Serving(ServeOptions options)
      : options_(std::move(options)),
        service_(options_.service),
        server_(
            options_.http,
            [this](HttpRequest request, const HttpReply& reply) {
              service_.handle(std::move(request), reply);
            },
            [this](const HttpEvent& event) { service_.watch(event); }) {
    server_.take_signals([this](int count) { end(count); });
  }

  void run() {
    std::thread network([this] { server_.run(); });
    try {
      fmt::print("attend: listening at {}\n", server_.url());
      std::fflush(stdout);
      service_.load();
      fmt::print("attend: ready\n");
      std::fflush(stdout);
    } catch (...) {
      server_.stop();
      network.join();
      throw;
    }
    network.join();
    // What is still being computed is nobody's answer any more.
    if (!service_.is_idle()) leave(0);
  }

 private:
  void end(int count) {
    if (count > 1) leave(1);
    // Loading cannot be stopped, and nobody was promised an answer yet.
    if (!service_.is_loaded()) leave(0);
    service_.begin_drain();
    server_.call_after(milliseconds(options_.drain), [this] { server_.drain(); });
  }

  [[noreturn]] void leave(int status) {
    if (!options_.http.socket_path.empty()) unlink(options_.http.socket_path.c_str());
    std::fflush(nullptr);
    std::_Exit(status);
  }

  ServeOptions options_;
  Service service_;
  HttpServer server_;
};

void run_serve(ServeOptions options) {
  if (!options.key_file.empty()) options.service.key = read_key(options.key_file);
  options.http.answer_time = milliseconds(options.deadline);
  for (std::string& host : options.http.hosts)
    std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
    });
  options.service.logs_json = options.log == LogForm::json;
  options.service.log = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  options.service.version = ATTEND_VERSION;
  Serving(std::move(options)).run();
}

void add_http_options(CLI::App& command, ServeOptions& options) {
  HttpOptions& http = options.http;
  command.add_option("--address", http.address, "the address to listen at, a number")
      ->envname("ATTEND_SERVE_ADDRESS")
      ->capture_default_str();
  command.add_option("--port", http.port, "the port; 0: a free one, which is printed")
      ->envname("ATTEND_SERVE_PORT")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_option("--socket", http.socket_path, "listen at a Unix socket of this path instead")
      ->envname("ATTEND_SERVE_SOCKET");
  command
      .add_option("--host", http.hosts,
                  "a name that requests may be for, besides the address and localhost; several")
      ->envname("ATTEND_SERVE_HOST");
  command
      .add_option("--certificate", http.certificate_file,
                  "speak TLS: a file of PEM with the certificate and those that signed it")
      ->envname("ATTEND_SERVE_CERTIFICATE");
  command.add_option("--certificate-key", http.certificate_key_file, "the file of its key")
      ->envname("ATTEND_SERVE_CERTIFICATE_KEY");
  command.add_option("--connections", http.connections, "that are open at once; more are told 503")
      ->envname("ATTEND_SERVE_CONNECTIONS")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command.add_option("--deadline", options.deadline, "seconds for an answer; then 504")
      ->envname("ATTEND_SERVE_DEADLINE")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  command
      .add_option("--drain-seconds", options.drain,
                  "how long it goes on answering, not ready, when it is told to end")
      ->envname("ATTEND_SERVE_DRAIN_SECONDS")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
}

void add_service_options(CLI::App& command, ServeOptions& options) {
  ServiceOptions& service = options.service;
  command
      .add_option("model", service.folders, "model folder; several are served beside each other")
      ->required();
  add_placement_options(command, service.model.placement);
  add_named_option<WeightType>(
      command, "--weights", service.model.weights,
      "what answers are computed with: float32, or bfloat16 or int8, faster and a little off");
  command.add_flag("--strict", service.model.strict,
                   "refuse a text that is longer than the model reads; otherwise it is cut");
  command
      .add_option("--threads", service.model.threads,
                  "that compute for each model, else one per core; answers do not depend on it")
      ->envname("ATTEND_SERVE_THREADS")
      ->check(CLI::Range(1, 1024));
  command.add_option("--queue", service.queue, "requests that wait for each model; then 429")
      ->envname("ATTEND_SERVE_QUEUE")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      .add_option("--key-file", options.key_file,
                  "a file whose first line clients must send as Authorization: Bearer")
      ->envname("ATTEND_SERVE_KEY_FILE");
  add_named_option<LogForm>(command, "--log", options.log,
                            "what standard error says of each request: lines, or objects of json")
      ->envname("ATTEND_SERVE_LOG");
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  auto* command = app.add_subcommand("serve", "Answer over HTTP what predict answers");
  add_service_options(*command, *options);
  add_http_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  attend serve model\n"
      "  curl -H 'Content-Type: application/json' -d '{\"texts\": [\"attention\"]}' \\\n"
      "    http://localhost:8080/v1/predict\n"
      "POST /v1/predict takes texts (at most 32), and as predict's options do: model (where there "
      "are\n"
      "several, the name of a folder), prefixes, beam, nbest, length_penalty, wu_length_penalty,\n"
      "coverage_penalty, minimum_length, maximum_length, unknown, keep_seen, samples, temperature, "
      "top_k,\n"
      "top_p, seed and details. It answers {\"model\", \"answers\": [what predict --json prints "
      "for each]}.\n"
      "GET /v1/models, /health, /ready (503 until the models are loaded, and before it ends) and "
      "/metrics.\n"
      "Errors are {\"error\": {\"message\", \"type\", \"param\", \"code\"}}. Each option of the "
      "server can\n"
      "be given as a variable, such as ATTEND_SERVE_PORT. SIGTERM ends it when what was asked is "
      "answered,\n"
      "a second one at once.");
  command->callback([options] { run_serve(*options); });
}

}  // namespace attend
