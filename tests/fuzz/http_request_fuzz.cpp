// A request from its first byte to its answer, without a socket: gate, routes and JSON fields. No
// model is loaded, so that requests to models end at the model's name.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "attend/http/http_head.h"
#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/routes.h"
#include "attend/serve/service.h"
#include "tests/fuzz/fuzz.h"

namespace attend::fuzz {
namespace {

// The log has exactly one line per request, for any bytes of the client.
void expect_line(const std::string& line) {
  expect(!line.empty() && line.find_first_of("\r\n") == std::string::npos);
}

// As ready as a service without models can be.
struct ReadyService : Service {
  ReadyService() : Service({.key = "key", .version = "1", .log = expect_line}) { load(); }
};

// Checks responses: the head ends correctly, and JSON types contain JSON.
class Client : public HttpExchange {
 public:
  void send(HttpResponse response, bool /*is_whole*/) override {
    const std::string head = http_response_head(response, "id", {});
    expect(head.find("\r\n\r\n") == head.size() - 4);
    expect(response.type != "application/json" || nlohmann::json::accept(response.body));
    expect(response.status < 500);
  }
  void add(std::string /*part*/) override {}
  void end() override {}
};

void hand_on(const HttpHead& head, std::string body) {
  static ReadyService service;
  const HttpReply reply(std::make_shared<Client>());
  if (const Route* route = admitting_route(service, head, reply))
    answer_by_route(*route, service, {head, std::move(body), "id"}, reply);
  service.watch(
      {.id = "id", .method = head.method, .target = head.target, .path = head.path, .status = 200});
}

}  // namespace
}  // namespace attend::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const std::string_view bytes = fuzz::text(data, size);
  const HttpRules rules{.hosts = {"localhost"}};
  const HttpHeadReading reading = read_http_head(bytes, rules);
  if (const auto* refusal = std::get_if<HttpRefusal>(&reading))
    fuzz::expect(
        nlohmann::json::accept(openai_error(RequestError(refusal->status, refusal->message)).body));
  // The rest is the body, because a required matching length would reject most mutations.
  if (const auto* head = std::get_if<HttpHead>(&reading))
    fuzz::hand_on(*head, std::string(bytes.substr(head->size)));
  return 0;
}
