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
  std::string id;  // what the client called it, or else a new one
};

struct HttpResponse {
  int status = 200;  // one of those that http_reason() knows
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> fields = {};  // such as Allow; printable ASCII
};

// What RFC 9110 calls a status. std::logic_error where the server sends no such.
std::string_view http_reason(int status);

// An error as OpenAI's clients read it: {"error": {"message", "type", "param", "code"}}, of which
// the last two are null where they are empty.
HttpResponse http_error(int status, const std::string& message, const std::string& param = "",
                        const std::string& code = "");

// How a response is sent: how its body is told from what follows, and who may read it.
struct HttpFraming {
  bool has_length = true;  // false: chunks, or where the client takes none the connection's end
  bool takes_chunks = true;
  bool keeps_alive = true;
  std::string origin = {};  // of a foreign site whose page may read the response
};

// The status line and fields of a response, the time among them, with the empty line behind them.
// std::logic_error where something in it is no printable ASCII, so that what a client sent can end
// no line here.
std::string http_response_head(const HttpResponse& response, const std::string& id,
                               const HttpFraming& framing);

// Where the answer to one request goes, from any thread: a connection of the server, whatever the
// thread that answers knows of it. HttpReply says what the functions do.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void send(HttpResponse response, bool is_whole) = 0;
  virtual void add(std::string part) = 0;
  virtual void end() = 0;

  std::atomic<bool> is_abandoned = false;
  std::atomic<int64_t> waiting_bytes = 0;
};

// Answers one request, from any thread, while the server is there. Copies answer the same request.
// Where the last copy goes and nothing was sent, the client gets a 500.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<HttpExchange> exchange) : exchange_(std::move(exchange)) {}

  // The whole answer. What is sent after an answer is dropped.
  void send(HttpResponse response) const;

  // An answer that comes in parts: its head (the body of `response` is the first part), the parts
  // and the end. A client that reads too slowly, so that HttpOptions::stream_bytes wait for it, is
  // cut off.
  void begin(HttpResponse response) const;
  void add(std::string part) const;
  void end() const;

  // Whether nobody waits for the answer any more: the client has left, or was told that its time
  // is over. Work on it is in vain.
  bool is_abandoned() const;
  // Bytes of parts that the client has not taken yet.
  int64_t waiting_bytes() const;

 private:
  std::shared_ptr<HttpExchange> exchange_;
};

}  // namespace attend
