// Tests of TLS; http_server_test.cpp tests the answers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "tests/http/support.h"
#include "tests/support/files.h"

namespace attend::http_tls_test {

using namespace std::chrono_literals;
using test::RunningServer;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

void echo(const HttpRequest& request, const HttpReply& reply) {
  reply.send({.body = request.head.target + request.body});
}

// A client that accepts any certificate.
class TlsClient : public test::Client {
 public:
  explicit TlsClient(uint16_t port) : Client(port), context_(SSL_CTX_new(TLS_client_method())) {
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), descriptor());
    is_greeted_ = SSL_connect(ssl_.get()) == 1;
  }

  bool is_greeted() const { return is_greeted_; }
  void say(std::string_view bytes) {
    SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  // Reads until `size` bytes have arrived or the server ends the connection.
  std::string hear(size_t size = std::string::npos) {
    std::string all;
    char bytes[16384];
    int count = 0;
    while (all.size() < size && (count = SSL_read(ssl_.get(), bytes, sizeof bytes)) > 0)
      all.append(bytes, static_cast<size_t>(count));
    return all;
  }
  // Returns whether the server has closed its side properly.
  bool was_ended() const { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  bool is_greeted_ = false;
};

class HttpTls : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL may write to a closed connection
    const std::string made = fmt::format(
        "cd {} && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 "
        "-subj /CN=localhost -keyout key.pem -out certificate.pem 2>openssl.txt",
        folder_ / "");
    ASSERT_EQ(std::system(made.c_str()), 0) << made;
  }

  HttpOptions options() {
    return {.certificate_file = folder_ / "certificate.pem",
            .certificate_key_file = folder_ / "key.pem"};
  }
  static std::string request(const RunningServer& server, const std::string& lines,
                             const std::string& body) {
    return fmt::format(
        "POST /p HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n{}\r\n{}",
        server.port(), body.size(), lines, body);
  }

  test::TemporaryFolder folder_;
};

TEST_F(HttpTls, AnswersRequestAfterRequest) {
  RunningServer server(options(), echo);
  EXPECT_THAT(server->url(), StartsWith("https://127.0.0.1:"));
  TlsClient client(server.port());
  ASSERT_TRUE(client.is_greeted());
  // Many records each way, sent before the answers arrive.
  const std::string body(100000, 'x');
  client.say(request(server, "", body) + request(server, "Connection: close\r\n", body));
  const std::string answers = client.hear();
  EXPECT_GT(answers.size(), 2 * body.size());
  EXPECT_THAT(answers, EndsWith("/p" + body));
  EXPECT_TRUE(client.was_ended());
}

TEST_F(HttpTls, ARefusalReachesAClientThatStillSends) {
  HttpOptions small = options();
  small.body_bytes = 10;
  RunningServer server(small, echo);
  TlsClient client(server.port());
  client.say(request(server, "", std::string(100000, 'x')));
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpTls, WhoDoesNotGreetIsClosed) {
  HttpOptions quick = options();
  quick.head_time = 50ms;
  RunningServer server(quick, echo);
  test::Client silent(server.port());
  EXPECT_EQ(silent.rest(), "");
  test::Client plain(server.port());
  plain.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(plain.rest().find("HTTP/"), std::string::npos);
}

TEST_F(HttpTls, AClientThatLeavesIsNoticed) {
  std::atomic<bool> is_asked = false, is_left = false;
  std::thread computes;
  RunningServer server(options(), [&](const HttpRequest&, const HttpReply& reply) {
    computes = std::thread([&is_left, reply] {
      while (!reply.is_abandoned()) std::this_thread::yield();
      is_left = true;
    });
    is_asked = true;
  });
  {
    TlsClient client(server.port());
    client.say(request(server, "", "{}"));
    while (!is_asked) std::this_thread::yield();
  }
  EXPECT_EQ(server.next_event().kind, HttpEvent::Kind::left);
  computes.join();
  EXPECT_TRUE(is_left);
}

TEST_F(HttpTls, ADrainWaitsForNoGreeting) {
  RunningServer server(options(), echo);
  TlsClient idle(server.port());
  ASSERT_TRUE(idle.is_greeted());
  const test::Client silent(server.port());
  server->drain();
  EXPECT_EQ(idle.hear(), "");
  idle.close();
  server.wait_for_end();
}

TEST_F(HttpTls, FilesThatAreNoneAreErrors) {
  const auto error = [](const HttpOptions& wrong) {
    return test::error_of([&] { HttpServer(wrong, echo, {}); });
  };
  HttpOptions wrong = options();
  wrong.certificate_key_file.clear();
  EXPECT_THAT(error(wrong), HasSubstr("both files"));
  wrong = options();
  wrong.certificate_file = wrong.certificate_key_file;
  EXPECT_THAT(error(wrong), HasSubstr("holds no certificate"));
  wrong = options();
  wrong.certificate_key_file = folder_ / "none.pem";
  EXPECT_THAT(error(wrong), HasSubstr("none.pem: holds no key"));
}

}  // namespace attend::http_tls_test
