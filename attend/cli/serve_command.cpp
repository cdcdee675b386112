#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/serve_settings.h"
#include "attend/cli/setting_options.h"
#include "attend/http/http_server.h"
#include "attend/serve/service.h"

namespace attend {
namespace {

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
    server_.call_after(options_.drain_time(), [this] { server_.drain(); });
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

struct ServeArguments {
  ServeOptions options;
  std::string config;
  std::vector<std::string> assignments;
};

void run_serve(ServeArguments& given) {
  // What one thread allocates another frees: with a heap for each thread, every heap grows to what
  // the largest request of all takes.
  mallopt(M_ARENA_MAX, 1);
  ServeOptions& options = given.options;
  options.read(given.config, given.assignments);
  options.service.log = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  options.service.version = ATTEND_VERSION;
  Serving(std::move(options)).run();
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto given = std::make_shared<ServeArguments>();
  auto* command = app.add_subcommand("serve", "Answer over HTTP what predict answers");
  command->add_option("model", given->options.service.folders,
                      "model folder; several are served beside each other");
  command->add_option("--config", given->config, "TOML file with the options as keys of [serve]");
  add_placement_options(*command, given->options.service.model.placement);
  add_setting_options(*command, given->options.settings(), given->assignments);
  command->footer(
      "Examples:\n"
      "  attend serve model                          (then open http://localhost:8080/)\n"
      "  attend serve model other --examples data/test.tsv\n"
      "  curl -H 'Content-Type: application/json' -d '{\"texts\": [\"attention\"]}' \\\n"
      "    http://localhost:8080/v1/predict\n"
      "POST /v1/predict takes texts (at most 32), and as predict's options do: model (where there "
      "are\n"
      "several, the name of a folder), prefixes, beam, nbest, length_penalty, wu_length_penalty,\n"
      "coverage_penalty, minimum_length, maximum_length, unknown, keep_seen, samples, temperature, "
      "top_k,\n"
      "top_p, seed and details. It answers {\"model\", \"answers\": [what predict --json prints "
      "for each]}.\n"
      "POST /v1/explain takes text, target, beam, view, method, layer, head, words, evidence, as "
      "explain's\n"
      "options do, and format: json, svg, html or page.\n"
      "GET / (the page), /v1/models, /health, /ready (503 until the models are loaded, and before "
      "it "
      "ends) and\n"
      "/metrics.\n"
      "Errors are {\"error\": {\"message\", \"type\", \"param\", \"code\"}}. Options but --device "
      "and "
      "--place can\n"
      "be given as variables, such as ATTEND_SERVE_PORT, and in a file, as port of [serve]. "
      "SIGTERM ends\n"
      "it when what was asked is answered, a second one at once. A socket that systemd hands on is "
      "taken\n"
      "in place of the address.");
  command->callback([given] { run_serve(*given); });
}

}  // namespace attend
