#include "attend/http/http_head.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attend::http_head_test {

const HttpRules rules{.hosts = {"localhost:8080", "[::1]:8080"},
                      .origins = {"https://friend.example"},
                      .body_bytes = 1000};

// As above for a server with names and open paths.
const HttpRules named{.hosts = {"localhost:80"},
                      .names = {"attend.example", "[fe80::2]", "two.example:81"},
                      .open_paths = {"/health"},
                      .body_bytes = 1000};

// A request with a Host and the given further lines.
std::string get(const std::string& lines = "", const std::string& first = "GET /health HTTP/1.1") {
  return first + "\r\nHost: localhost:8080\r\n" + lines + "\r\n";
}

std::string post(const std::string& lines) {
  return get("Content-Type: application/json\r\n" + lines, "POST /v1/predict HTTP/1.1");
}

// The status of a refusal; 0 if the head was read, -1 if it is incomplete.
int status(const std::string& bytes, const HttpRules& with = rules,
           const std::string& local_host = "") {
  const HttpHeadReading reading = read_http_head(bytes, with, local_host);
  if (const auto* refusal = std::get_if<HttpRefusal>(&reading)) {
    EXPECT_FALSE(refusal->message.empty());
    return refusal->status;
  }
  return std::holds_alternative<HttpHead>(reading) ? 0 : -1;
}

HttpHead read(const std::string& bytes) {
  HttpHeadReading reading = read_http_head(bytes, rules);
  if (const auto* refusal = std::get_if<HttpRefusal>(&reading))
    ADD_FAILURE() << refusal->status << ' ' << refusal->message;
  return std::holds_alternative<HttpHead>(reading) ? std::get<HttpHead>(reading) : HttpHead{};
}

TEST(HttpHead, WhatTheServerReads) {
  const std::string text = post(
      "Content-Length: 0012\r\nAuthorization: Bearer key\r\nX-Request-Id: a.B-9_\r\n"
      "Expect: 100-Continue\r\n");
  const HttpHead head = read("\r\n\r\n" + text + "{\"texts\": []");
  EXPECT_EQ(head.size, text.size() + 4);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.content_length, 12);
  EXPECT_EQ(head.authorization, "Bearer key");
  EXPECT_EQ(head.request_id, "a.B-9_");
  EXPECT_TRUE(head.takes_chunks && head.keeps_alive && head.awaits_continue);
  const HttpHead query = read(get("", "GET /a/b?c=/d?e HTTP/1.1"));
  EXPECT_EQ(query.target, "/a/b?c=/d?e");
  EXPECT_EQ(query.path, "/a/b");
  EXPECT_TRUE(read(get("X-Request-Id: a b\r\n")).request_id.empty());
  EXPECT_TRUE(read(get("X-Request-Id: " + std::string(65, 'a') + "\r\n")).request_id.empty());
}

TEST(HttpHead, EveryBeginningOfARequestIsIncomplete) {
  const std::string text = "\r\n" + post("Content-Length: 5\r\nX-A: \xe9\t b\r\n");
  for (size_t size = 0; size < text.size(); ++size) EXPECT_EQ(status(text.substr(0, size)), -1);
  EXPECT_EQ(status(text), 0);
}

TEST(HttpHead, ABodyMayComeInChunks) {
  const HttpHead head = read(post("tRANSFER-Encoding: \tChunked \r\nExpect: 100-continue\r\n"));
  EXPECT_TRUE(head.has_chunks && head.awaits_continue && !head.lacks_length);
  EXPECT_EQ(head.content_length, 0);
  EXPECT_FALSE(read(post("Content-Length: 5\r\n")).has_chunks);
  EXPECT_EQ(status(get("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.1")), 415);
}

TEST(HttpHead, AnyOtherTransferEncodingIsRefused) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  for (const char* value : {"gzip", "identity", "", "chunked, gzip", "gzip, chunked", ", chunked",
                            "xchunked", "chunked;a=b", "\"chunked\"", "chunked, chunked"}) {
    const std::string line = std::string("Transfer-Encoding: ") + value + "\r\n";
    EXPECT_NE(status(get(line)), 0) << value;
    EXPECT_NE(status(post("Content-Length: 5\r\n" + line)), 0) << value;
    EXPECT_NE(status(post(line + chunked)), 0) << value;
  }
  EXPECT_NE(status(post(chunked + chunked)), 0);
  EXPECT_EQ(status(post(chunked + "Content-Length: 5\r\n")), 400);
  EXPECT_EQ(status(post("Content-Length: 5\r\n" + chunked)), 400);
  EXPECT_EQ(status(get("Content-Type: application/json\r\n" + chunked, "POST / HTTP/1.0")), 411);
  EXPECT_EQ(status(get("Transfer-Encoding : chunked\r\n")), 400);
}

TEST(HttpHead, AContentLengthIsOneNumber) {
  EXPECT_EQ(status(post("Content-Length: 1000\r\n")), 0);
  EXPECT_EQ(status(post("Content-Length: 1001\r\n")), 413);
  EXPECT_TRUE(read(post("")).lacks_length);
  EXPECT_FALSE(read(post("Content-Length: 0\r\n")).lacks_length || read(get()).lacks_length);
  EXPECT_EQ(read(get()).content_length, 0);
  for (const char* value : {"+5", "-5", "0x5", "5.0", "5 0", "5,5", "", "\"5\"", "5a", "5_0"})
    EXPECT_EQ(status(post(std::string("Content-Length: ") + value + "\r\n")), 400) << value;
  EXPECT_EQ(status(post("Content-Length: 5\r\nContent-Length: 5\r\n")), 400);
  // Up to 18 digits are accepted for any number; longer numbers are refused.
  EXPECT_EQ(read(post("Content-Length: 000000000000000005\r\n")).content_length, 5);
  EXPECT_NE(status(post("Content-Length: 0000000000000000005\r\n")), 0);
  EXPECT_NE(status(post("Content-Length: 18446744073709551621\r\n")), 0);  // 2^64 + 5
}

TEST(HttpHead, TheHostIsOneOfTheServers) {
  const auto with_host = [](const std::string& lines) {
    return "GET / HTTP/1.1\r\n" + lines + "\r\n";
  };
  EXPECT_EQ(status(with_host("Host: LOCALHOST:8080\r\n")), 0);
  EXPECT_EQ(status(with_host("Host: [::1]:8080\r\n")), 0);
  for (const char* host : {"evil.example", "localhost", "localhost:80801", "a@localhost:8080",
                           "localhost:8080/", "localhost:8080, evil.example", "", "evil example"})
    EXPECT_EQ(status(with_host(std::string("Host: ") + host + "\r\n")), 421) << host;
  EXPECT_EQ(status(with_host("")), 400);
  EXPECT_EQ(status(with_host("Host: localhost:8080\r\nHost: localhost:8080\r\n")), 400);
  EXPECT_EQ(status("GET / HTTP/1.0\r\n\r\n"), 0);
  // An absolute target determines the host.
  EXPECT_EQ(read(get("", "GET HTTP://localhost:8080 HTTP/1.1")).target, "/");
  EXPECT_EQ(read(get("", "GET http://localhost:8080/a?b HTTP/1.1")).path, "/a");
  EXPECT_EQ(status(get("", "GET http://evil.example/ HTTP/1.1")), 421);
  EXPECT_EQ(status("GET http://evil.example/ HTTP/1.0\r\n\r\n"), 421);
}

TEST(HttpHead, AHostMayBeAName) {
  const auto status_of = [](const std::string& host, const std::string& local = "",
                            const std::string& path = "/") {
    return status("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n", named, local);
  };
  for (const char* host : {"localhost", "localhost:80", "Attend.Example", "attend.example:8443",
                           "[fe80::2]", "[FE80::2]:1", "two.example:81"})
    EXPECT_EQ(status_of(host), 0) << host;
  for (const char* host : {"localhost:81", "attend.example.evil", "attend.example:", "two.example",
                           "attend.example:x", "attend.example:0", "attend.example:65536",
                           "attend.example:80:80", "a@attend.example", "[fe80::2]x", "fe80::2"})
    EXPECT_EQ(status_of(host), 421) << host;
  // The address at which the client connected.
  EXPECT_EQ(status_of("10.42.3.7:80"), 421);
  EXPECT_EQ(status_of("10.42.3.7:80", "10.42.3.7:80"), 0);
  EXPECT_EQ(status_of("10.42.3.7", "10.42.3.7:80"), 0);
  EXPECT_EQ(status_of("10.42.3.7:81", "10.42.3.7:80"), 421);
  EXPECT_EQ(status_of("[fd00::7]", "[fd00::7]:80"), 0);
  EXPECT_EQ(status_of(""), 421);
  // A path that is open for every host, except as part of an absolute target.
  EXPECT_EQ(status_of("10.42.3.7:8080", "", "/health?a"), 0);
  EXPECT_EQ(status_of("10.42.3.7:8080", "", "/health/"), 421);
  EXPECT_EQ(status_of("localhost", "", "http://evil.example/health"), 421);
  HttpRules any = named;
  any.takes_any_host = true;
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: upstream\r\n\r\n", any), 0);
}

TEST(HttpHead, ARefusalHasWhatWasRead) {
  const std::string lines =
      "X-Request-Id: mine\r\nOrigin: https://friend.example\r\nContent-Length: 1001\r\n";
  const HttpHeadReading reading = read_http_head(post(lines), rules);
  const auto* refusal = std::get_if<HttpRefusal>(&reading);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->status, 413);
  EXPECT_EQ(refusal->head.request_id, "mine");
  EXPECT_EQ(refusal->head.origin, "https://friend.example");
  EXPECT_EQ(refusal->head.method, "POST");
  EXPECT_EQ(refusal->head.target, "/v1/predict");
}

TEST(HttpHead, ABodyThatIsEncodedIsRefusedByName) {
  for (const char* value : {"gzip", "br", "identity, gzip"}) {
    const HttpHeadReading reading = read_http_head(
        post(std::string("Content-Length: 5\r\nContent-Encoding: ") + value + "\r\n"), rules);
    const auto* refusal = std::get_if<HttpRefusal>(&reading);
    ASSERT_NE(refusal, nullptr) << value;
    EXPECT_EQ(refusal->status, 415);
    EXPECT_NE(refusal->message.find(value), std::string::npos) << refusal->message;
  }
  EXPECT_EQ(status(post("Content-Length: 5\r\nContent-Encoding: Identity\r\n")), 0);
  EXPECT_EQ(status(get("Content-Encoding: gzip\r\n")), 0) << "the request lacks a body";
}

TEST(HttpHead, ATargetIsAPathOfVisibleCharacters) {
  for (const std::string& target :
       std::vector<std::string>{"health", "*", "/a#b", "/a\\b", "ftp://localhost:8080/",
                                "localhost:8080", "http://localhost:8080?a"})
    EXPECT_EQ(status(get("", "GET " + target + " HTTP/1.1")), 400) << target;
  for (const char byte : {'\0', '\1', '\t', '\x7f', '\x80', '\xff'})
    EXPECT_EQ(status(get("", std::string("GET /a") + byte + " HTTP/1.1")), 400) << int{byte};
}

TEST(HttpHead, TheFirstLineIsExact) {
  for (const char* first :
       {"GET  / HTTP/1.1", "GET / HTTP/1.1x", "GET /", "GET /a b HTTP/1.1", "GET\t/\tHTTP/1.1",
        "GET / ICY/1.1", "GET / http/1.1", "G(T / HTTP/1.1"})
    EXPECT_TRUE(status(get("", first)) == 400 || status(get("", first)) == 505) << first;
  for (const char* version : {"HTTP/1.9", "HTTP/2.0", "HTTP/0.9", "HTTP/11.1", "HTTP/1.1 "})
    EXPECT_NE(status(get("", std::string("GET / ") + version)), 0) << version;
  EXPECT_EQ(status(get("", "GET / HTTP/2.0")), 505);
  // A bad request line is refused as soon as it arrives, before any field.
  EXPECT_EQ(status("GET /\r\n"), 400);
  for (const char* start : {"get / HTTP/1.1", " ", "\n", "\x16\x03\x01", "\r\n\r\n\r\n"})
    EXPECT_EQ(status(start), 400) << start;
  EXPECT_EQ(status("\r\n\r\n"), -1);
}

TEST(HttpHead, LinesEndWithCarriageReturnAndLineFeed) {
  const std::string good = get("X-A: b\r\n");
  for (size_t i = 0; i < good.size(); ++i) {
    if (good[i] != '\r') continue;
    std::string no_return = good, no_feed = good;
    no_return.erase(i, 1);
    no_feed.erase(i + 1, 1);
    EXPECT_EQ(status(no_return), 400) << i;
    // The last line is still incomplete without its line feed.
    EXPECT_EQ(status(no_feed), i + 2 == good.size() ? -1 : 400) << i;
  }
}

TEST(HttpHead, AFieldIsOneLineOfAName) {
  for (const std::string& line :
       std::vector<std::string>{"no colon", ": b", "X A: b", "X-A : b", "X(A): b", "X\xe9: b"})
    EXPECT_EQ(status(get(line + "\r\n")), 400) << line;
  EXPECT_EQ(status(get("X-A: b\r\n c\r\n")), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n Host: localhost:8080\r\n\r\n"), 400);
  for (const char byte : {'\0', '\1', '\x0b', '\x0c', '\x1f', '\x7f'})
    EXPECT_EQ(status(get(std::string("X-A: b") + byte + "c\r\n")), 400) << int{byte};
  EXPECT_EQ(status(get("X-A: \xc3\xa9\tb\r\n")), 0);
}

TEST(HttpHead, TheHeadHasALimitAtTheByte) {
  const auto sized = [](size_t size) {
    const size_t rest = get("X-A: \r\n").size();
    return get("X-A: " + std::string(size - rest, 'a') + "\r\n");
  };
  ASSERT_EQ(sized(http_head_bytes).size(), http_head_bytes);
  EXPECT_EQ(status(sized(http_head_bytes)), 0);
  EXPECT_EQ(status(sized(http_head_bytes + 1)), 431);
  EXPECT_EQ(status("\r\n" + sized(http_head_bytes)), 0);
  // A head that is already too long is refused before its end arrives.
  EXPECT_EQ(status(sized(http_head_bytes + 1).substr(0, http_head_bytes - 1)), -1);
  EXPECT_EQ(status(sized(http_head_bytes + 1).substr(0, http_head_bytes)), 431);
  EXPECT_EQ(status("GET /" + std::string(http_head_bytes, 'a')), 431);
}

TEST(HttpHead, TheFieldsHaveALimit) {
  const auto fields = [](size_t count) {
    std::string lines;
    for (size_t i = 1; i < count; ++i) lines += "a:b\r\n";  // in addition to Host
    return get(lines);
  };
  EXPECT_EQ(status(fields(http_head_fields)), 0);
  EXPECT_EQ(status(fields(http_head_fields + 1)), 431);
}

TEST(HttpHead, APageOfAnotherSiteMayNotAsk) {
  EXPECT_EQ(status(get("Origin: http://localhost:8080\r\n")), 0);
  for (const char* origin : {"http://evil.example", "null", "", "http://localhost:8081"})
    EXPECT_EQ(status(get(std::string("Origin: ") + origin + "\r\n")), 403) << origin;
  EXPECT_EQ(status(get("Origin: http://localhost:8080\r\nOrigin: http://localhost:8080\r\n")), 403);
  // A browser reports same-origin for the host name that it used.
  const std::string site = "Origin: http://evil.example\r\nSec-Fetch-Site: ";
  EXPECT_EQ(status(get(site + "same-origin\r\n")), 0);
  EXPECT_TRUE(read(get(site + "same-origin\r\n")).origin.empty());
  for (const char* value : {"same-site", "cross-site", "none", "", "same-origin, same-origin"})
    EXPECT_EQ(status(get(site + value + "\r\n")), 403) << value;
  EXPECT_EQ(status(get(site + "same-origin\r\nSec-Fetch-Site: cross-site\r\n")), 403);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: evil.example\r\nSec-Fetch-Site: same-origin\r\n\r\n"),
            421);
  const auto of_type = [](const std::string& lines) {
    return get(lines + "Content-Length: 2\r\n", "POST / HTTP/1.1");
  };
  EXPECT_EQ(status(of_type("Content-Type: Application/JSON; charset=utf-8\r\n")), 0);
  for (const char* type : {"text/plain", "application/jsonx", "", "multipart/form-data"})
    EXPECT_EQ(status(of_type(std::string("Content-Type: ") + type + "\r\n")), 415) << type;
  EXPECT_EQ(status(of_type("")), 415);
  EXPECT_EQ(status(get("Content-Length: 0\r\n", "POST / HTTP/1.1")), 0);
}

TEST(HttpHead, APageOfANamedSiteMayAsk) {
  EXPECT_EQ(read(get("Origin: https://Friend.example\r\n")).origin, "https://friend.example");
  EXPECT_TRUE(read(get("Origin: http://localhost:8080\r\n")).origin.empty());
  for (const char* origin : {"http://friend.example", "https://friend.example:1",
                             "https://friend.example.evil", "https://friend.example/"})
    EXPECT_EQ(status(get(std::string("Origin: ") + origin + "\r\n")), 403) << origin;
  const auto asks = [](const std::string& origin, const std::string& method,
                       const std::string& lines) {
    return read(get("Origin: " + origin + "\r\n" + lines, method + " / HTTP/1.1")).asks_permission;
  };
  const std::string wanted = "Access-Control-Request-Method: POST\r\n";
  EXPECT_TRUE(asks("https://friend.example", "OPTIONS", wanted));
  EXPECT_FALSE(asks("https://friend.example", "OPTIONS", ""));
  EXPECT_FALSE(asks("https://friend.example", "GET", wanted));
  EXPECT_FALSE(asks("http://localhost:8080", "OPTIONS", wanted));
  const auto asked = [&](const std::string& fields) {
    const std::string lines = "Origin: https://friend.example\r\nAccess-Control-Request-Headers: ";
    return read(get(lines + fields + "\r\n" + wanted, "OPTIONS / HTTP/1.1")).asked_fields;
  };
  EXPECT_EQ(asked("content-type,x-stainless-os"), "content-type,x-stainless-os");
  EXPECT_EQ(asked("a, \xe9"), "") << "nothing else reaches the answer";
}

TEST(HttpHead, OneExpectationIsKnown) {
  EXPECT_EQ(status(post("Content-Length: 5\r\nExpect: tea\r\n")), 417);
  EXPECT_EQ(status(post("Content-Length: 1001\r\nExpect: 100-continue\r\n")), 413);
  EXPECT_FALSE(read(get("Expect: 100-continue\r\n")).awaits_continue);
}

TEST(HttpHead, WhenTheConnectionIsKept) {
  EXPECT_TRUE(read(get()).keeps_alive);
  EXPECT_FALSE(read(get("Connection: x, Close\r\n")).keeps_alive);
  const HttpHead old = read(get("Connection: keep-alive\r\n", "GET / HTTP/1.0"));
  EXPECT_FALSE(old.keeps_alive || old.takes_chunks);
}

}  // namespace attend::http_head_test
