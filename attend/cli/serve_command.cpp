#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/log_writer.h"
#include "attend/cli/serve_settings.h"
#include "attend/cli/setting_options.h"
#include "attend/http/http_server.h"
#include "attend/serve/service.h"

namespace attend {
namespace {

// Prints a line and ignores write errors.
void announce(const std::string& text) {
  const std::string line = "attend: " + text + '\n';
  [[maybe_unused]] const ssize_t size = write(STDOUT_FILENO, line.data(), line.size());
}

// Opens closed standard descriptors. Otherwise a client's connection could get one of their numbers
// and receive the log.
void open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0) open("/dev/null", O_RDWR);
}

std::string lost_line(int64_t lines, bool is_json) {
  if (is_json) return fmt::format(R"({{"event":"lost","lines":{}}})", lines);
  return fmt::format("{} lines of the log were lost before this one", lines);
}

// A server and its models, from the first connection to the last.
class Serving {
 public:
  explicit Serving(ServeOptions options)
      : options_(std::move(options)),
        log_(STDERR_FILENO,
             [this](int64_t lines) { return lost_line(lines, options_.service.logs_json); }),
        server_(
            options_.http,
            [this](HttpRequest request, const HttpReply& reply) {
              service_.handle(std::move(request), reply);
            },
            [this](const HttpEvent& event) { service_.watch(event); },
            [this](const HttpHead& head) { return service_.judge(head); }),
        service_(service_options()) {
    server_.take_signals([this](int count) { end(count); });
  }

  void run() {
    std::thread network([this] { server_.run(); });
    try {
      announce("listening at " + server_.url());
      service_.load();
      announce("ready");
    } catch (...) {
      server_.stop();
      network.join();
      throw;
    }
    network.join();
    // No client waits for the remaining work.
    if (!service_.is_idle()) leave(0);
  }

 private:
  ServiceOptions service_options() {
    ServiceOptions chosen = options_.service;
    chosen.log = [this](const std::string& line) { log_.add(line); };
    chosen.lost_log_lines = [this] { return log_.lost(); };
    return chosen;
  }

  void end(int count) {
    if (count > 1) leave(1);
    // Loading cannot be interrupted, and no answer has been promised yet.
    if (!service_.is_loaded()) leave(0);
    service_.begin_drain();
    server_.call_after(options_.drain_time(), [this] { server_.drain(); });
  }

  [[noreturn]] void leave(int status) {
    if (!options_.http.socket_path.empty()) unlink(options_.http.socket_path.c_str());
    log_.stop();
    std::_Exit(status);
  }

  ServeOptions options_;
  LogWriter log_;
  HttpServer server_;
  Service service_;  // destroyed before the server, to which its threads send answers
};

struct ServeArguments {
  ServeOptions options;
  std::string config;
  std::vector<std::string> assignments;
};

void run_serve(ServeArguments& given) {
  // Memory is often freed by another thread than the allocating one. With one heap per thread,
  // every heap would grow to the size of the largest request.
  mallopt(M_ARENA_MAX, 1);
  // A closed pipe at standard output or error must not end the server.
  std::signal(SIGPIPE, SIG_IGN);
  open_standard_descriptors();
  ServeOptions& options = given.options;
  options.read(given.config, given.assignments);
  options.service.version = ATTEND_VERSION;
  Serving(std::move(options)).run();
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto given = std::make_shared<ServeArguments>();
  auto* command = app.add_subcommand("serve", "Answer requests over HTTP as predict does");
  command->add_option("model", given->options.folders,
                      "model folder, named by its last part, or NAME=FOLDER; repeatable");
  command->add_option("--config", given->config, "TOML file with the options as keys of [serve]");
  add_placement_options(*command, given->options.service.model.placement);
  add_setting_options(*command, given->options.settings(), given->assignments);
  command->footer(
      "Examples:\n"
      "  attend serve model                          (then open http://localhost:8080/)\n"
      "  attend serve model other --examples data/test.tsv\n"
      "  curl -H 'Content-Type: application/json' -d '{\"texts\": [\"attention\"]}' \\\n"
      "    http://localhost:8080/v1/predict\n"
      "POST /v1/predict takes texts, model (a name, if there are several), and options such as\n"
      "length_penalty. It answers {\"model\", \"answers\": [the objects of predict --json]}.\n"
      "POST /v1/explain takes text, options such as method, and format: json, svg, html or page.\n"
      "GET /openapi.json describes all routes and their fields.\n"
      "GET / is the page. Others are /v1/models, /health, /metrics, and /ready, which is 503\n"
      "until the models are loaded and during shutdown.\n"
      "Errors are {\"error\": {\"message\", \"type\", \"param\", \"code\"}}. All options except\n"
      "--device and --place can also be environment variables, such as ATTEND_SERVE_PORT, or\n"
      "keys of a file, such as port of [serve].\n"
      "SIGTERM, SIGINT or SIGHUP stops the server after it has answered open requests; a second\n"
      "SIGTERM or SIGINT stops it at once. A socket that systemd passes replaces the address;\n"
      "requests then wait for the models.");
  command->callback([given] { run_serve(*given); });
}

}  // namespace attend
