// http_program PORT LOG: a server with the routes for tests of hostile clients. It logs a line of
// JSON for each request that reached it and each client that left:
//   GET /health, POST /v1/predict  at once
//   POST /v1/slow                  after five seconds
//   GET /v1/stream                 a part every tenth of a second, for ten seconds
//   GET /v1/flood                  256 MiB
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/http/http_server.h"

namespace {

using namespace attend;
using namespace std::chrono_literals;

// Waits in small steps; returns false if the client has left.
bool wait(const HttpReply& reply, int tenths) {
  for (int i = 0; i < tenths && !reply.is_abandoned(); ++i) std::this_thread::sleep_for(100ms);
  return !reply.is_abandoned();
}

void answer_slowly(const HttpReply& reply) {
  if (wait(reply, 50)) reply.send({.body = "{}"});
}

void stream(const HttpReply& reply) {
  reply.begin({.type = "text/event-stream", .body = "data: 0\n\n"});
  for (int i = 0; i < 100 && wait(reply, 1); ++i) reply.add("data: 1\n\n");
  reply.end();
}

void flood(const HttpReply& reply) {
  reply.begin({.type = "text/plain"});
  const std::string part(65536, 'x');
  for (int i = 0; i < 4096 && !reply.is_abandoned(); ++i) {
    reply.add(part);
    while (reply.waiting_bytes() > 262144 && wait(reply, 1)) {
    }
  }
  reply.end();
}

class Program {
 public:
  explicit Program(const std::string& log) : log_(log) {}
  ~Program() {
    for (std::thread& thread : threads_) thread.join();
  }

  void handle(const HttpRequest& request, const HttpReply& reply) {
    write({{"target", request.head.target},
           {"method", request.head.method},
           {"length", request.body.size()}});
    static const std::map<std::string, void (*)(const HttpReply&)> slow = {
        {"/v1/slow", answer_slowly}, {"/v1/stream", stream}, {"/v1/flood", flood}};
    if (const auto found = slow.find(request.head.path); found != slow.end()) {
      threads_.emplace_back(found->second, reply);
      return;
    }
    const bool is_post = request.head.method == "POST";
    if (request.head.path != (is_post ? "/v1/predict" : "/health"))
      return reply.send(http_error(404, "unknown path"));
    if (!is_post && request.head.method != "GET" && request.head.method != "HEAD")
      return reply.send(http_error(405, "method not allowed"));
    reply.send({.body = "{\"status\":\"ok\"}"});
  }

  void watch(const HttpEvent& event) {
    if (event.kind == HttpEvent::Kind::left) write({{"event", "gone"}, {"target", event.target}});
  }

 private:
  void write(const nlohmann::json& line) { log_ << line.dump() << std::endl; }

  std::ofstream log_;
  std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  HttpOptions options;
  options.port = parse_number<int64_t>(argv[1]).value_or(0);
  options.body_bytes = 1 << 20;
  options.body_time = 15s;
  options.write_time = 15s;
  Program program(argv[2]);
  HttpServer server(
      options,
      [&](const HttpRequest& request, const HttpReply& reply) { program.handle(request, reply); },
      [&](const HttpEvent& event) { program.watch(event); });
  server.take_signals([&](int count) {
    if (count == 1)
      server.drain();
    else
      server.stop();
  });
  server.run();
}
