#include "attend/http/http_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/http/support.h"
#include "tests/support/files.h"

namespace attend::http_server_test {

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

TEST(HttpServer, AnswersRequestAfterRequest) {
  RunningServer server({}, echo);
  Client client(server.port());
  client.send(get(server.port(), "/a", "X-Request-Id: mine\r\n"));
  const std::string first = client.answer();
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(first, HasSubstr("X-Request-Id: mine\r\n"));
  EXPECT_THAT(first, EndsWith("\r\n\r\n/a"));
  client.send(post(server.port(), 5) + "12345" + get(server.port(), "/b"));
  EXPECT_THAT(client.answer(), EndsWith("\r\n\r\n/12345"));
  EXPECT_THAT(client.answer(), EndsWith("\r\n\r\n/b"));
  EXPECT_EQ(server.next_event().id, "mine");
  const HttpEvent event = server.next_event();
  EXPECT_EQ(event.kind, HttpEvent::Kind::answered);
  EXPECT_EQ(event.method, "POST");
  EXPECT_EQ(event.received, 5);
  EXPECT_EQ(event.status, 200);
}

TEST(HttpServer, AnswersAThousandRequestsOfOneWrite) {
  RunningServer server({}, echo);
  Client client(server.port());
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += get(server.port(), fmt::format("/{}", i));
  std::thread sender([&] { client.send(requests); });
  for (int i = 0; i < 1000; ++i) EXPECT_THAT(client.answer(), EndsWith(fmt::format("\n/{}", i)));
  sender.join();
}

TEST(HttpServer, ReadsARequestThatComesByteByByte) {
  RunningServer server({.head_time = 600s, .body_time = 600s}, echo);
  Client client(server.port());
  const std::string body(20000, 'x');
  for (const char byte : post(server.port(), body.size()) + body) client.send({&byte, 1});
  EXPECT_THAT(client.answer(), EndsWith("\r\n\r\n/" + body));
}

TEST(HttpServer, EndsTheConnectionWhereItIsAskedTo) {
  RunningServer server({}, echo);
  Client client(server.port());
  client.send(get(server.port(), "/a", "Connection: close\r\n") + get(server.port(), "/b"));
  EXPECT_THAT(client.answer(), HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(client.rest(), "");
  Client old(server.port());
  old.send("HEAD /a HTTP/1.0\r\n\r\n");
  const std::string head = old.rest();
  EXPECT_THAT(head, HasSubstr("Content-Length: 2\r\nConnection: close\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST(HttpServer, ASlowHeadIsRefused) {
  RunningServer server({.head_time = 20ms}, echo);
  Client client(server.port());
  client.send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(client.status(), 408);
  EXPECT_EQ(client.rest(), "");
  EXPECT_EQ(server.next_event().kind, HttpEvent::Kind::refused);
}

TEST(HttpServer, ASlowBodyIsRefused) {
  RunningServer server({.body_time = 20ms}, echo);
  Client client(server.port());
  client.send(post(server.port(), 5) + "1234");
  EXPECT_EQ(client.status(), 408);
  EXPECT_EQ(client.rest(), "");
}

TEST(HttpServer, AnIdleConnectionIsClosed) {
  RunningServer server({.idle_time = 20ms}, echo);
  Client client(server.port());
  EXPECT_EQ(client.rest(), "");
}

TEST(HttpServer, ALateAnswerIsGivenUp) {
  Holder holder;
  RunningServer server({.answer_time = 20ms}, holder.handler());
  Client client(server.port());
  client.send(get(server.port()));
  const HttpReply reply = holder.next();
  const std::string answer = client.answer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 504 "));
  EXPECT_THAT(answer, HasSubstr("X-Should-Retry: false\r\n"));
  EXPECT_TRUE(reply.is_abandoned());
  // A later answer is dropped, and the connection accepts the next request.
  reply.send({.body = "late"});
  client.send(get(server.port(), "/now"));
  EXPECT_THAT(client.answer(), EndsWith("now"));
}

TEST(HttpServer, AClientThatLeavesIsNoticed) {
  Holder holder;
  RunningServer server({.leave_time = 1ms}, holder.handler());
  const auto leave = [&](const std::string& more, void (Client::*how)()) {
    Client client(server.port());
    client.send(get(server.port(), "/slow") + more);
    const HttpReply reply = holder.next();
    (client.*how)();
    Holder::wait_until_abandoned(reply);
    const HttpEvent event = server.next_event();
    EXPECT_EQ(event.kind, HttpEvent::Kind::left);
    EXPECT_EQ(event.target, "/slow");
    reply.send({});
  };
  leave("", &Client::close);
  leave("", &Client::reset);
  leave(get(server.port()), &Client::close);  // after bytes that are still unread
}

TEST(HttpServer, AClientThatHasSentAllGetsItsAnswer) {
  RunningServer server({}, echo);
  Client client(server.port());
  client.send(get(server.port(), "/half"));
  client.end_sending();
  EXPECT_THAT(client.rest(), EndsWith("/half"));
  Client cut(server.port());
  cut.send("GET / HTTP/1.1\r\n");
  cut.end_sending();
  EXPECT_THAT(cut.rest(), StartsWith("HTTP/1.1 400 "));
}

TEST(HttpServer, MoreConnectionsAreTold) {
  RunningServer server({.connections = 2}, echo);
  Client first(server.port());
  std::optional<Client> second(std::in_place, server.port());
  Client third(server.port());
  EXPECT_THAT(third.rest(), StartsWith("HTTP/1.1 503 "));
  first.send(get(server.port()));
  EXPECT_EQ(first.status(), 200);
  second.reset();
  // The server notices the disconnect with a delay.
  for (int status = 503; status != 200;) {
    Client next(server.port());
    next.send(get(server.port()));
    status = next.status();
    ASSERT_TRUE(status == 200 || status == 503) << status;
  }
}

TEST(HttpServer, AllBodiesTogetherAreBounded) {
  Holder holder;
  RunningServer server({.body_bytes = 100000, .all_bodies = 150000}, holder.handler());
  const std::string half(50000, ' ');
  Client first(server.port()), second(server.port());
  first.send(post(server.port(), 100000) + half + half);
  std::optional<HttpReply> reply = holder.next();
  // Only received bytes count, not the announced length.
  second.send(post(server.port(), 100000) + half + half);
  EXPECT_THAT(second.rest(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1\r\n")));
  std::exchange(reply, std::nullopt)->send({});
  EXPECT_EQ(first.status(), 200);
  first.send(post(server.port(), 100000) + half + half);
  reply = holder.next();
  // The request of a disconnected client uses memory until all work on it has ended.
  first.close();
  Holder::wait_until_abandoned(*reply);
  Client third(server.port());
  third.send(post(server.port(), 100000) + half + half);
  EXPECT_THAT(third.rest(), StartsWith("HTTP/1.1 503 "));
  reply.reset();
  Client fourth(server.port());
  fourth.send(post(server.port(), 100000) + half + half);
  holder.next().send({});
  EXPECT_EQ(fourth.status(), 200);
}

TEST(HttpServer, ARefusalReachesAClientThatStillSends) {
  RunningServer server({.body_bytes = 1 << 20}, echo);
  Client client(server.port());
  client.send(post(server.port(), 8 << 20));
  client.send(std::string(8 << 20, ' '));
  EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 413 "));
  EXPECT_FALSE(client.was_reset());
}

TEST(HttpServer, ABodyIsInvited) {
  RunningServer server({}, echo);
  Client client(server.port());
  client.send(post(server.port(), 5, "Expect: 100-continue\r\n"));
  EXPECT_EQ(client.answer(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("12345");
  EXPECT_THAT(client.answer(), EndsWith("12345"));
}

TEST(HttpServer, AStreamHasChunksOrEndsWithTheConnection) {
  RunningServer server({}, [](const HttpRequest&, const HttpReply& reply) {
    reply.begin({.type = "text/event-stream", .body = "one"});
    reply.add("0123456789abcdef");
    reply.end();
    reply.add("late");
  });
  Client client(server.port());
  client.send(get(server.port(), "/", "Connection: close\r\n"));
  EXPECT_THAT(client.rest(), EndsWith("\r\n\r\n3\r\none\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"));
  Client old(server.port());
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.rest(), EndsWith("\r\n\r\none0123456789abcdef"));
  Client head(server.port());
  head.send(fmt::format("HEAD / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.port()) +
            get(server.port(), "/", "Connection: close\r\n"));
  EXPECT_THAT(head.answer(), EndsWith("\r\n\r\n"));
  EXPECT_THAT(head.rest(), EndsWith("0\r\n\r\n"));
}

TEST(HttpServer, AStreamWhoseClientDoesNotReadIsCutOff) {
  Holder holder;
  RunningServer server({.stream_bytes = 100000}, holder.handler());
  Client client(server.port(), 4096);
  client.send(get(server.port()));
  const HttpReply reply = holder.next();
  reply.begin({});
  // The waiting bytes exceed the limit: a write takes at most stream_bytes and a part, and an equal
  // amount follows.
  while (!reply.is_abandoned())
    if (reply.waiting_bytes() < 300000) reply.add(std::string(10000, 'x'));
  EXPECT_EQ(server.next_event().kind, HttpEvent::Kind::left);
}

TEST(HttpServer, AnAnswerThatIsNotReadIsCutOff) {
  RunningServer server({.write_time = 20ms}, [](const HttpRequest&, const HttpReply& reply) {
    reply.send({.body = std::string(32 << 20, 'x')});
  });
  Client client(server.port(), 4096);
  client.send(get(server.port()));
  EXPECT_EQ(server.next_event().kind, HttpEvent::Kind::left);
}

TEST(HttpServer, AnAnswerThatNobodyGivesIsA500) {
  RunningServer server({}, [](const HttpRequest& request, const HttpReply& reply) {
    if (request.head.path == "/throws") throw std::runtime_error("broken");
    if (request.head.path == "/bad") reply.send({.type = "a\r\nb"});
    if (request.head.path == "/part") reply.begin({.body = "some"});
  });
  Client client(server.port());
  for (const char* path : {"/throws", "/drops", "/bad"}) {
    client.send(get(server.port(), path));
    EXPECT_EQ(client.status(), 500) << path;
  }
  // A partial answer must not look complete.
  client.send(get(server.port(), "/part"));
  EXPECT_THAT(client.rest(), testing::Not(EndsWith("0\r\n\r\n")));
}

TEST(HttpServer, ADrainAnswersWhatIsUnderWay) {
  // A path is unique, unlike a port number, which may be reused.
  const test::TemporaryFolder folder;
  const std::string path = folder / "socket";
  Holder holder;
  RunningServer server({.socket_path = path}, holder.handler());
  Client idle(path), busy(path);
  busy.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const HttpReply reply = holder.next();
  server->drain();
  EXPECT_EQ(idle.rest(), "");
  EXPECT_THROW(Client{path}, std::runtime_error);
  reply.send({.body = "last"});
  EXPECT_THAT(busy.rest(), testing::AllOf(HasSubstr("Connection: close"), EndsWith("last")));
  busy.close();
  idle.close();
  server.wait_for_end();
}

TEST(HttpServer, ADrainEndsInTime) {
  Holder holder;
  RunningServer server({.drain_time = 20ms}, holder.handler());
  Client client(server.port());
  client.send(get(server.port()));
  const HttpReply reply = holder.next();
  server->drain();
  server.wait_for_end();
}

TEST(HttpServer, ListensAtAUnixSocket) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "socket";
  for (int time = 0; time < 2; ++time) {
    RunningServer server({.socket_path = path}, echo);
    EXPECT_EQ(server->url(), "unix:" + path);
    Client client(path);
    client.send("GET /unix HTTP/1.1\r\nHost: upstream\r\n\r\n");
    EXPECT_THAT(client.answer(), EndsWith("/unix"));
    EXPECT_THAT(test::error_of([&] { HttpServer({.socket_path = path}, echo, {}); }),
                HasSubstr("another process listens"));
  }
  EXPECT_THAT(test::error_of([&] { HttpServer({.socket_path = folder.write("f", "")}, echo, {}); }),
              HasSubstr("not a socket"));
}

// Like a socket of systemd, which also keeps the file of a Unix socket.
TEST(HttpServer, TakesASocketThatListens) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "socket";
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  const int local = socket(AF_UNIX, SOCK_STREAM, 0), wide = socket(AF_INET, SOCK_STREAM, 0);
  const int unused = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(bind(local, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(local, 9) + listen(wide, 9), 0);  // `wide`: any port of any address
  {
    RunningServer server({.listener = local}, echo);
    EXPECT_EQ(server->url(), "unix:" + path);
    Client client(path);
    client.send("GET /unix HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.answer(), EndsWith("/unix"));
  }
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  RunningServer server({.listener = wide}, echo);
  EXPECT_THAT(server->url(), StartsWith("http://0.0.0.0:"));
  Client client(server.port());
  client.send(get(server.port(), "/there"));
  EXPECT_THAT(client.answer(), EndsWith("/there"));
  EXPECT_THAT(test::error_of([&] { HttpServer({.listener = unused}, echo, {}); }),
              HasSubstr("is not a listening socket"));
  close(unused);
}

TEST(HttpServer, APageOfANamedSiteIsToldThatItMayAsk) {
  RunningServer server({.origins = {"https://friend.example"}}, echo);
  Client client(server.port());
  client.send(
      fmt::format("OPTIONS /v1/predict HTTP/1.1\r\nHost: localhost:{}\r\n"
                  "Origin: https://friend.example\r\n"
                  "Access-Control-Request-Method: POST\r\n\r\n",
                  server.port()));
  const std::string permission = client.answer();
  EXPECT_THAT(permission, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(permission, HasSubstr("Access-Control-Allow-Origin: https://friend.example\r\n"));
  EXPECT_THAT(permission, HasSubstr("Access-Control-Allow-Methods: GET, POST\r\n"));
  EXPECT_THAT(permission, HasSubstr("-Headers: Authorization, Content-Type, X-Request-Id\r\n"));
  EXPECT_THAT(permission, EndsWith("\r\n\r\n")) << "no body";
  client.send(
      fmt::format("OPTIONS /v1/predict HTTP/1.1\r\nHost: localhost:{}\r\n"
                  "Origin: https://friend.example\r\nAccess-Control-Request-Method: POST\r\n"
                  "Access-Control-Request-Headers: content-type,x-stainless-os\r\n\r\n",
                  server.port()));
  EXPECT_THAT(client.answer(),
              HasSubstr("Access-Control-Allow-Headers: content-type,x-stainless-os\r\n"));
  client.send(get(server.port(), "/a", "Origin: https://friend.example\r\n"));
  EXPECT_THAT(client.answer(), HasSubstr("Access-Control-Allow-Origin: https://friend.example"));
  client.send(get(server.port(), "/a"));
  EXPECT_THAT(client.answer(), Not(HasSubstr("Access-Control")));
}

TEST(HttpServer, AnAddressThatCannotBeHadIsAnError) {
  RunningServer server({}, echo);
  EXPECT_THAT(test::error_of([&] { HttpServer({.port = server.port()}, echo, {}); }),
              HasSubstr("cannot listen"));
  EXPECT_THAT(test::error_of([] { HttpServer({.address = "no"}, echo, {}); }), HasSubstr("'no'"));
}

}  // namespace attend::http_server_test
