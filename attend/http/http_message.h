#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/http/http_head.h"

namespace attend {

struct HttpRequest {
  HttpHead head;
  std::string body;
  std::string id;  // the client's id, or a new one
};

struct HttpResponse {
  int status = 200;  // a status known to http_reason()
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> fields = {};  // such as Allow; printable ASCII
};

// Reason phrase of a status (RFC 9110). std::logic_error on a status that the server never sends.
std::string_view http_reason(int status);

// An error as plain text.
HttpResponse http_error(int status, const std::string& message);

// Framing of a response's body, and the origin that may read it.
struct HttpFraming {
  bool has_length = true;  // false: chunked, or until the connection closes
  bool takes_chunks = true;
  bool keeps_alive = true;
  std::string origin = {};  // foreign site; its pages may read the response
};

// Status line and fields of a response, with the date and the final empty line. std::logic_error on
// text that is not printable ASCII; this prevents header injection.
std::string http_response_head(const HttpResponse& response, const std::string& id,
                               const HttpFraming& framing);

// Destination of the answer to one request, independent of the connection. Thread-safe. HttpReply
// documents the functions.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void send(HttpResponse response, bool is_whole) = 0;
  virtual void add(std::string part) = 0;
  virtual void end() = 0;

  std::atomic<bool> is_abandoned = false;
  std::atomic<int64_t> waiting_bytes = 0;
};

// Answers one request. Thread-safe while the server exists. Copies answer the same request. If the
// last copy is destroyed before anything was sent, the client gets a 500.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<HttpExchange> exchange) : exchange_(std::move(exchange)) {}

  // Sends the whole answer. Later answers are dropped.
  void send(HttpResponse response) const;

  // Sends an answer in parts: the head (`response.body` is the first part), further parts, and the
  // end. A slow client with over HttpOptions::stream_bytes waiting is disconnected.
  void begin(HttpResponse response) const;
  void add(std::string part) const;
  void end() const;

  // Whether the answer is no longer needed: the client disconnected, or got a timeout.
  bool is_abandoned() const;
  // Bytes of parts not yet written to the client.
  int64_t waiting_bytes() const;

 private:
  std::shared_ptr<HttpExchange> exchange_;
};

}  // namespace attend
