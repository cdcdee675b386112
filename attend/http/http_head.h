#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace attend {

// Limits of a request's head, from its first letter to the empty line after its fields.
constexpr size_t http_head_bytes = 8192;
constexpr size_t http_head_fields = 100;

// Rules for accepting requests.
struct HttpRules {
  // Accepted hosts, in lower case, in the form of the Host field: "localhost:8080". Other hosts are
  // refused, because a foreign site may point its own name at this server (DNS rebinding).
  std::vector<std::string> hosts;
  std::vector<std::string> names = {};       // further hosts; without a port: with any port
  std::string default_port = ":80";          // port of a Host without a port
  std::vector<std::string> open_paths = {};  // paths that accept any Host, such as "/health"
  bool takes_any_host = false;               // accept every Host
  // Sites, in lower case, such as "https://example.org". Pages of these sites and of this server's
  // hosts may send requests and read the answers. Pages of other sites are refused.
  std::vector<std::string> origins = {};
  int64_t body_bytes = 16 << 20;  // maximum size of a request's body
};

// Head of a request (RFC 9110 and 9112).
struct HttpHead {
  size_t size = 0;               // bytes of the head, with empty lines before it
  std::string method;            // upper case
  std::string target;            // path and optional query after a question mark; printable ASCII
  std::string path;              // begins with a slash; not decoded
  bool takes_chunks = true;      // false: HTTP/1.0
  bool keeps_alive = true;       // the client may send another request
  bool awaits_continue = false;  // the client waits for 100 Continue before it sends the body
  bool has_chunks = false;       // chunked body of unknown length
  bool lacks_length = false;     // a POST without a length, which is an error
  int64_t content_length = 0;    // at most HttpRules::body_bytes; 0 for a chunked body
  std::string authorization;     // value of the field; empty if absent
  std::string origin;  // origin of the page that sent the request, if in HttpRules::origins
  bool asks_permission = false;  // CORS preflight of that page
  std::string asked_fields;      // fields that the page wants to send, separated by commas
  // X-Request-Id if it is 1 to 64 characters of A-Z a-z 0-9 . _ -, else empty.
  std::string request_id;
};

// Reason not to read a request: a status 4xx or 5xx, and advice to the client.
struct HttpRefusal {
  int status = 400;
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields = {};  // answer fields: printable ASCII
  HttpHead head = {};                                            // the part read before the error
};

// Refusal of a body larger than `limit` bytes.
HttpRefusal body_too_large(int64_t limit);

struct HttpIncomplete {};

using HttpHeadReading = std::variant<HttpIncomplete, HttpRefusal, HttpHead>;

// Reads the head at the start of `arrived`. Returns HttpIncomplete until the head is complete or
// invalid. After an HttpRefusal nothing more can be read. `local_host`: address and port of this
// server on the client's connection, in the form of a Host, accepted as a Host; empty: unknown.
//
// Strict, because a request can hide in another if two programs read it differently. Lines end with
// CR LF, fields are not folded, a Content-Length is one number, and Transfer-Encoding is "chunked"
// without a Content-Length.
HttpHeadReading read_http_head(std::string_view arrived, const HttpRules& rules,
                               std::string_view local_host = {});

}  // namespace attend
