// Tests of requests that the server accepts, and of its answers to others.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "attend/http/http_server.h"
#include "tests/http/support.h"

namespace attend::http_requests_test {

using namespace std::chrono_literals;
using test::Client;
using test::echo;
using test::get;
using test::Holder;
using test::post;
using test::RunningServer;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string chunked(uint16_t port, const std::string& lines = "") {
  return fmt::format(
      "POST /c HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n{}\r\n",
      port, lines);
}

TEST(HttpRequests, ABodyMayComeInChunks) {
  RunningServer server({.body_bytes = 1000, .head_time = 600s, .body_time = 600s}, echo);
  Client client(server.port());
  client.send(chunked(server.port()) + "5\r\nfirst\r\nb\r\n and second\r\n0\r\n\r\n" +
              get(server.port(), "/next"));
  EXPECT_THAT(client.answer(), EndsWith("\r\n\r\n/cfirst and second"));
  EXPECT_THAT(client.answer(), EndsWith("/next"));
  EXPECT_EQ(server.next_event().received, 16);
  for (const char byte : chunked(server.port()) + "3\r\n{ }\r\n0\r\n\r\n") client.send({&byte, 1});
  EXPECT_THAT(client.answer(), EndsWith("/c{ }"));
  client.send(chunked(server.port(), "Expect: 100-continue\r\n"));
  EXPECT_EQ(client.answer(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("0\r\n\r\n");
  EXPECT_THAT(client.answer(), EndsWith("\r\n\r\n/c"));
}

TEST(HttpRequests, ABodyInChunksHasTheSameLimits) {
  RunningServer server({.body_bytes = 1000}, echo);
  const auto status = [&](const std::string& body) {
    Client client(server.port());
    client.send(chunked(server.port()) + body);
    return client.status();
  };
  const std::string part = "1f4\r\n" + std::string(500, ' ') + "\r\n";
  EXPECT_EQ(status(part + part + "0\r\n\r\n"), 200);
  EXPECT_EQ(status(part + part + "1\r\n"), 413);
  EXPECT_EQ(status("5;a=b\r\n12345\r\n0\r\n\r\n"), 400);
  Client cut(server.port());
  cut.send(chunked(server.port()) + "5\r\n123");
  cut.end_sending();
  EXPECT_EQ(cut.status(), 400);
  RunningServer slow({.body_time = 20ms}, echo);
  Client client(slow.port());
  client.send(chunked(slow.port()) + "5\r\n123");
  EXPECT_EQ(client.status(), 408);
}

TEST(HttpRequests, ARefusalKeepsTheOriginAndTheId) {
  RunningServer server(
      {.origins = {"https://friend.example"}, .body_bytes = 1000, .body_time = 20ms}, echo);
  const std::string kept = "Origin: https://friend.example\r\nX-Request-Id: mine\r\n";
  const auto refusal = [&](const std::string& method, const std::string& lines) {
    Client client(server.port());
    client.send(fmt::format("{} /path?a HTTP/1.1\r\nHost: localhost:{}\r\n{}{}\r\n", method,
                            server.port(), kept, lines));
    const std::string answer = client.rest();
    EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Origin: https://friend.example\r\n"));
    EXPECT_THAT(answer, HasSubstr("X-Request-Id: mine\r\n"));
    const HttpEvent event = server.next_event();
    EXPECT_EQ(event.kind, HttpEvent::Kind::refused);
    EXPECT_EQ(event.id, "mine");
    EXPECT_EQ(event.target, "/path?a");
    EXPECT_FALSE(event.reason.empty());
    return answer.substr(9, 3);
  };
  const std::string json = "Content-Type: application/json\r\n";
  EXPECT_EQ(refusal("POST", json + "Content-Length: 1001\r\n"), "413");
  EXPECT_EQ(refusal("POST", "Content-Length: 5\r\n"), "415");
  EXPECT_EQ(refusal("POST", json), "411");
  EXPECT_EQ(refusal("POST", json + "Content-Length: 5\r\n"), "408");
  EXPECT_EQ(refusal("GET", "Expect: tea\r\n"), "417");
  // The answer to HEAD has no body, also if it is a refusal.
  Client client(server.port());
  client.send("HEAD / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_THAT(client.rest(), AllOf(StartsWith("HTTP/1.1 421 "), EndsWith("\r\n\r\n")));
  EXPECT_THAT(server.next_event().reason, HasSubstr("'evil.example'"));
}

TEST(HttpRequests, AHeadIsJudgedBeforeTheBodyArrives) {
  RunningServer server(
      {}, echo, [](const HttpEvent&) {},
      [](const HttpHead& head) -> std::optional<HttpResponse> {
        if (head.authorization == "key") return std::nullopt;
        return http_error(401, "no key");
      });
  Client client(server.port());
  client.send(post(server.port(), 1 << 20) + "only the beginning");
  EXPECT_THAT(client.rest(), AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("Connection: close")));
  // The connection survives a refusal if the body arrived with its head.
  Client small(server.port());
  small.send(post(server.port(), 5) + "12345" + post(server.port(), 5, "Authorization: key\r\n"));
  EXPECT_THAT(small.answer(), AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("keep-alive")));
  small.send("12345");
  EXPECT_THAT(small.answer(), EndsWith("/12345"));
  // The key is checked before the missing length.
  const std::string bare = fmt::format("POST / HTTP/1.1\r\nHost: localhost:{}\r\n", server.port());
  for (const int wanted : {401, 411}) {
    Client without_length(server.port());
    without_length.send(bare + (wanted == 411 ? "Authorization: key\r\n" : "") + "\r\n");
    EXPECT_EQ(without_length.status(), wanted);
    EXPECT_EQ(without_length.rest(), "");
  }
}

TEST(HttpRequests, TheAddressOfTheConnectionIsAHost) {
  RunningServer server({.address = "0.0.0.0", .open_paths = {"/health"}}, echo);
  const auto status = [&](in_addr_t address, const std::string& host, const std::string& path) {
    Client client(server.port(), 0, address);
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: {}:{}\r\n\r\n", path, host, server.port()));
    return client.status();
  };
  EXPECT_EQ(status(INADDR_LOOPBACK + 1, "127.0.0.2", "/"), 200);
  EXPECT_EQ(status(INADDR_LOOPBACK, "127.0.0.2", "/"), 421);
  EXPECT_EQ(status(INADDR_LOOPBACK + 1, "evil.example", "/"), 421);
  EXPECT_EQ(status(INADDR_LOOPBACK, "10.42.3.7", "/health"), 200);
}

TEST(HttpRequests, AllAnswersTogetherAreBounded) {
  RunningServer server({.all_answers = 3 << 20},
                       [](const HttpRequest& request, const HttpReply& reply) {
                         const bool is_large = request.head.path == "/large";
                         reply.send({.body = std::string(is_large ? 2 << 20 : 60000, 'x')});
                       });
  std::optional<Client> slow(std::in_place, server.port(), 4096);
  slow->send(get(server.port(), "/large"));
  char first = 0;
  ASSERT_EQ(recv(slow->descriptor(), &first, 1, MSG_PEEK), 1);
  // The client does not read it, so that the server still holds it.
  Client second(server.port());
  second.send(get(server.port(), "/large"));
  EXPECT_THAT(second.answer(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1\r\n")));
  second.send(get(server.port(), "/small"));
  EXPECT_EQ(second.status(), 200);
  slow.reset();
  EXPECT_EQ(server.next_event().status, 503);
  EXPECT_EQ(server.next_event().status, 200);
  EXPECT_EQ(server.next_event().kind, HttpEvent::Kind::left);
  second.send(get(server.port(), "/large"));
  EXPECT_THAT(second.answer(), EndsWith("\r\n\r\n" + std::string(2 << 20, 'x')));
}

TEST(HttpRequests, ALongAnswerArrivesWhole) {
  std::string body;
  for (int i = 0; i < 300000; ++i) body += fmt::format("{} ", i);
  RunningServer server(
      {}, [&](const HttpRequest&, const HttpReply& reply) { reply.send({.body = body}); });
  Client client(server.port());
  client.send(get(server.port()) + get(server.port()));
  EXPECT_THAT(client.answer(), EndsWith("\r\n\r\n" + body));
  EXPECT_THAT(client.answer(), EndsWith("\r\n\r\n" + body));
}

TEST(HttpRequests, AStreamHasADeadline) {
  Holder holder;
  RunningServer server({.stream_time = 20ms}, holder.handler());
  Client client(server.port());
  client.send(get(server.port(), "/stream"));
  const HttpReply reply = holder.next();
  reply.begin({.body = "begun"});
  EXPECT_THAT(client.answer(), StartsWith("HTTP/1.1 200 "));
  // Each part is written in time, but the stream never ends.
  while (!reply.is_abandoned())
    if (reply.waiting_bytes() < 1000) reply.add("more");
  EXPECT_THAT(client.rest(), Not(EndsWith("0\r\n\r\n")));
  const HttpEvent event = server.next_event();
  EXPECT_EQ(event.kind, HttpEvent::Kind::left);
  EXPECT_THAT(event.reason, HasSubstr("0.02 s"));
}

}  // namespace attend::http_requests_test
