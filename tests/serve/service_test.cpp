// Tests of answers without a model; tests/cli/test_serve.py tests answers with one.
#include "attend/serve/service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "attend/decode/not_a_number.h"
#include "attend/explain/explain_files.h"
#include "attend/serve/asking.h"
#include "attend/serve/routes.h"
#include "tests/http/support.h"
#include "tests/support/files.h"

namespace attend::service_test {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class ServiceTest : public testing::Test {
 protected:
  // The whole response to a request, head and body.
  std::string ask(const std::string& method, const std::string& path, const std::string& lines = "",
                  const std::string& body = "") {
    test::Client client(server_->port());
    client.send(
        fmt::format("{} {} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n"
                    "Content-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}",
                    method, path, server_->port(), body.size(), lines, body));
    return client.rest();
  }

  void serve(ServiceOptions options = {}) {
    service_.emplace(std::move(options));
    server_.emplace(
        HttpOptions{},
        [this](HttpRequest request, const HttpReply& reply) {
          service_->handle(std::move(request), reply);
          const std::lock_guard lock(mutex_);
          ++handled_;
          changed_.notify_all();
        },
        [this](const HttpEvent& event) { service_->watch(event); },
        [this](const HttpHead& head) { return service_->judge(head); });
  }

  void wait_until_handled(int requests) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return handled_ >= requests; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int handled_ = 0;
  std::optional<Service> service_;
  std::optional<test::RunningServer> server_;
};

TEST_F(ServiceTest, IsReadyOnceItIsLoadedAndUntilItEnds) {
  serve();
  EXPECT_THAT(ask("GET", "/health"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("GET", "/livez"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("GET", "/ready"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("loaded")));
  EXPECT_THAT(ask("POST", "/v1/predict"),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: 5\r\n")));
  service_->load();
  EXPECT_THAT(ask("GET", "/readyz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("POST", "/v1/predict"), StartsWith("HTTP/1.1 400 "));
  service_->begin_drain();
  EXPECT_THAT(ask("GET", "/ready"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("end")));
  EXPECT_THAT(ask("GET", "/health"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServiceTest, RequestsCanWaitForTheModels) {
  serve({.waits_for_models = true});
  test::Client models(server_->port()), predict(server_->port());
  const std::string host = fmt::format("Host: localhost:{}\r\n", server_->port());
  models.send("GET /v1/models HTTP/1.1\r\n" + host + "\r\n");
  wait_until_handled(1);
  predict.send("POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n" + host +
               "Content-Length: 2\r\n\r\n{}");
  wait_until_handled(2);
  EXPECT_THAT(ask("GET", "/health"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("GET", "/ready"), StartsWith("HTTP/1.1 503 "));
  service_->load();
  EXPECT_EQ(models.status(), 200);
  EXPECT_EQ(predict.status(), 422);
}

TEST_F(ServiceTest, ProbesTakeAnyHost) {
  EXPECT_THAT(open_paths(),
              testing::UnorderedElementsAre("/health", "/livez", "/ready", "/readyz", "/ping"));
}

TEST_F(ServiceTest, WithoutTheKeyNoBodyIsRead) {
  serve({.key = "secret"});
  test::Client client(server_->port());
  client.send(
      fmt::format("POST /v1/predict HTTP/1.1\r\nHost: localhost:{}\r\n"
                  "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
                  server_->port()));
  EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 401 "));
}

TEST_F(ServiceTest, EveryRouteKnowsItsMethods) {
  serve();
  service_->load();
  std::map<std::string, std::string> allowed;
  for (const Route& route : route_table()) {
    std::string& all = allowed[route.path];
    all += (all.empty() ? "" : ", ") + route.method + (route.method == "GET" ? ", HEAD" : "");
  }
  for (const auto& [path, methods] : allowed)
    EXPECT_THAT(ask("PUT", path),
                AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: " + methods + "\r\n")))
        << path;
  EXPECT_THAT(ask("HEAD", "/health"), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\n")));
  for (const char* path : {"//", "/health/", "/Health", "/v1", "/health%00", "/../health"})
    EXPECT_THAT(ask("GET", path), AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("unknown_path")))
        << path;
}

TEST_F(ServiceTest, APathOrUrlNamesNoModel) {
  serve();
  service_->load();
  for (const char* name : {"../words", "/etc/passwd", "http://localhost/words",
                           "file:///etc/passwd", "words\\u0000", "words/", "."}) {
    const auto body = fmt::format(R"({{"model": "{}", "texts": ["{}"]}})", name, name);
    EXPECT_THAT(ask("POST", "/v1/predict", "", body),
                AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("model_not_found")))
        << name;
  }
  for (const char* path : {"//etc/passwd", "/v1/../../etc/passwd", "/%2e%2e/etc/passwd",
                           "/v1/models/words", "/v1/predict/", "/v1?url=http://localhost/"})
    EXPECT_THAT(ask("GET", path), StartsWith("HTTP/1.1 404 ")) << path;
}

TEST_F(ServiceTest, AKeyIsAsked) {
  serve({.key = "secret"});
  service_->load();
  for (const char* line : {"", "Authorization: secret\r\n", "Authorization: Bearer secreT\r\n",
                           "Authorization: Basic secret\r\n", "Authorization: Bearer secret1\r\n",
                           "Authorization: Bearer \r\n"})
    EXPECT_THAT(ask("GET", "/v1/models", line),
                AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("WWW-Authenticate: Bearer\r\n")))
        << line;
  // Voyage's client reads the reason as `detail`.
  EXPECT_THAT(ask("POST", "/v1/rerank"), HasSubstr(R"("detail":"send Authorization: Bearer)"));
  // The scheme is case-insensitive (RFC 9110, 11.1).
  for (const char* scheme : {"Bearer", "bearer", "BEARER"})
    EXPECT_THAT(ask("GET", "/v1/models", fmt::format("Authorization: {} secret\r\n", scheme)),
                AllOf(StartsWith("HTTP/1.1 200 "), EndsWith(R"({"data":[],"object":"list"})")));
  EXPECT_THAT(ask("GET", "/health"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServiceTest, TheDocumentDescribesEveryAnswer) {
  serve({.key = "secret"});
  const std::string answer = ask("GET", "/openapi.json");
  const auto document = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
  const auto& schemas = document["components"]["schemas"];
  std::set<std::string> names;
  for (const Route& route : route_table()) {
    const std::string method = route.method == "GET" ? "get" : "post";
    const auto& operation = document["paths"][route.path][method];
    EXPECT_TRUE(names.insert(operation["operationId"]).second) << route.path;
    EXPECT_EQ(operation.contains("security"), route.needs_key) << route.path;
    for (const std::string& type : route.types) {
      const auto& schema = operation["responses"]["200"]["content"][type]["schema"];
      EXPECT_EQ(type == "application/json", schema.contains("$ref")) << route.path;
    }
  }
  // Every reference exists.
  const std::string text = document.dump(), begin = "#/components/schemas/";
  for (size_t i = text.find(begin); i != std::string::npos; i = text.find(begin, i)) {
    i += begin.size();
    EXPECT_TRUE(schemas.contains(text.substr(i, text.find('"', i) - i)));
  }
}

TEST_F(ServiceTest, TheDocumentListsTheFilesOfExplanations) {
  serve({});
  const std::string answer = ask("GET", "/openapi.json");
  const auto document = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
  const auto& format = document["components"]["schemas"]["ExplainRequest"]["properties"]["format"];
  EXPECT_EQ(format["default"], "json");
  const auto& types = document["paths"]["/v1/explain"]["post"]["responses"]["200"]["content"];
  size_t count = 0;
  for (const ExplainFile& file : explain_files()) {
    EXPECT_EQ(format["enum"][count++], file.suffix.substr(1));
    EXPECT_TRUE(types.contains(file.media_type.substr(0, file.media_type.find(';'))));
  }
  EXPECT_EQ(format["enum"][count], "page");
}

TEST_F(ServiceTest, CountsRequests) {
  serve({.version = "1.2.3"});
  ask("GET", "/health");
  ask("GET", "/health?a");
  ask("GET", "/no-such\"path");
  for (int i = 0; i < 3; ++i) server_->next_event();
  const std::string text = ask("GET", "/metrics");
  for (const char* line :
       {"\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
        "\nattend_build_info{version=\"1.2.3\"} 1\n",
        "\nattend_requests_total{route=\"/health\",code=\"200\"} 2\n",
        "\nattend_requests_total{route=\"other\",code=\"404\"} 1\n",
        "\nattend_request_duration_seconds_count 3\n", "\nattend_queue_size 0\n",
        "\n# TYPE attend_batch_size histogram\n", "\nattend_batch_size_bucket{le=\"+Inf\"} 0\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(ServiceTest, ScoresTextsWithoutAModel) {
  serve();
  const auto score = [&](const std::string& fields) {
    return ask("POST", "/v1/score", "", fields);
  };
  const std::string pairs = R"({"answers": ["a b", "c"], "references": ["a b", "d"])";
  EXPECT_THAT(
      score(pairs + R"(, "metrics": ["sequence_error"]})"),
      AllOf(StartsWith("HTTP/1.1 200 "), EndsWith(R"({"examples":2,"sequence_error_rate":0.5})")));
  EXPECT_THAT(score(pairs + R"(, "metrics": ["accuracy"], "sentences": true})"),
              EndsWith(R"({"sentences":[{"accuracy":1.0},{"accuracy":0.0}]})"));
  // Second references follow after the first references of all answers.
  EXPECT_THAT(score(R"({"answers": ["a", "c"], "references": ["a", "d", "b", "c"],)"
                    R"( "metrics": ["sequence_error"]})"),
              EndsWith(R"({"examples":2,"sequence_error_rate":0.0})"));
  EXPECT_THAT(score(R"({"answers": ["a", "c"], "references": ["a", "b", "c"]})"),
              AllOf(StartsWith("HTTP/1.1 422 "), HasSubstr("3 references for 2 answers")));
  EXPECT_THAT(score(pairs + R"(, "metrics": ["perplexity"]})"),
              AllOf(StartsWith("HTTP/1.1 422 "), HasSubstr(R"("param":"metrics")")));
  EXPECT_THAT(score(pairs + R"(, "metrics": ["rmse"]})"),
              AllOf(StartsWith("HTTP/1.1 422 "), HasSubstr("not a finite number")));
  for (const size_t size : {4096U, 4097U})
    EXPECT_THAT(score(fmt::format(R"({{"answers": ["{0}"], "references": ["{0}"]}})",
                                  std::string(size, 'x'))),
                StartsWith(size > 4096 ? "HTTP/1.1 422 " : "HTTP/1.1 200 "));
}

TEST_F(ServiceTest, AModelThatCannotBeLoadedIsAnError) {
  Service service({.folders = {{"model", "/no/such/model"}}});
  EXPECT_THAT(test::error_of([&] { service.load(); }), HasSubstr("/no/such/model"));
  EXPECT_FALSE(service.is_ready());
}

TEST(Asking, TellsWhoseFaultAFailureIs) {
  EXPECT_EQ(failure_of(RequestError(413, "long")).status(), 413);
  EXPECT_EQ(failure_of(Error("a fault of the text")).status(), 422);
  EXPECT_EQ(failure_of(NotANumber("a fault of the weights")).status(), 500);
  EXPECT_EQ(failure_of(std::runtime_error("a fault of the system")).status(), 500);
}

TEST(Metrics, AHistogramCountsUpToEachBound) {
  Histogram histogram({1, 2.5});
  for (const double value : {0.5, 1.0, 1.5, 3.0}) histogram.add(value);
  EXPECT_EQ(histogram.text("x"),
            "x_bucket{le=\"1\"} 2\nx_bucket{le=\"2.5\"} 3\nx_bucket{le=\"+Inf\"} 4\n"
            "x_sum 6\nx_count 4\n");
}

}  // namespace attend::service_test
