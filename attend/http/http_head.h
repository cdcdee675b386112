#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace attend {

// Of one request, from its first letter to the empty line behind its fields.
constexpr size_t http_head_bytes = 8192;
constexpr size_t http_head_fields = 100;

// Which requests a server takes.
struct HttpRules {
  // The hosts that requests may be for, as the field Host names them, in small letters:
  // "localhost:8080". Others are refused: a page of a foreign site may have a name of its own that
  // leads to this server (DNS rebinding).
  std::vector<std::string> hosts;
  std::vector<std::string> names = {};       // also hosts, with any port or none
  std::string default_port = ":80";          // of a Host without a port
  std::vector<std::string> open_paths = {};  // paths that take any Host, such as "/health"
  bool takes_any_host = false;               // no Host is refused
  // The sites, such as "https://example.org", in small letters, whose pages may ask and read the
  // answers. Pages of other sites are refused, except pages of this server's hosts.
  std::vector<std::string> origins = {};
  int64_t body_bytes = 16 << 20;  // maximum size of a request's body
};

// What the server reads of a request's head (RFC 9110 and 9112).
struct HttpHead {
  size_t size = 0;               // bytes that it took, empty lines before it included
  std::string method;            // capital letters
  std::string target;            // path, and after a question mark the query; printable ASCII
  std::string path;              // begins with a slash; nothing in it is decoded
  bool takes_chunks = true;      // false: HTTP/1.0
  bool keeps_alive = true;       // the client may ask once more
  bool awaits_continue = false;  // the client sends its body when it is told to
  bool has_chunks = false;       // the body comes in chunks; its length is unknown
  bool lacks_length = false;     // a POST without any length: it has no body, and should have one
  int64_t content_length = 0;    // within HttpRules::body_bytes; 0 if the body comes in chunks
  std::string authorization;     // the field's value; empty if the field is missing
  std::string origin;            // of HttpRules::origins, of a page of which the request comes
  bool asks_permission = false;  // a browser asks first whether that page may (CORS preflight)
  std::string asked_fields;      // fields that the page wants to send: names between commas
  std::string request_id;        // X-Request-Id if it is 1 to 64 of A-Z a-z 0-9 . _ -, else empty
};

// Why a request is not read: a status of 4xx or 5xx, and what the client can do.
struct HttpRefusal {
  int status = 400;
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields = {};  // of the answer: printable ASCII
  HttpHead head = {};  // as far as it was read before the fault was found
};

// The refusal of a body of more than `limit` bytes.
HttpRefusal body_too_large(int64_t limit);

struct HttpIncomplete {};

using HttpHeadReading = std::variant<HttpIncomplete, HttpRefusal, HttpHead>;

// Reads the head that `arrived` begins with. The answer is HttpIncomplete until the head is there
// or cannot become a good one. After an HttpRefusal nothing that follows can be read.
// `local_host`: address and port of this server on the client's connection, as a Host names them,
// which is accepted as a Host; empty: unknown.
//
// Strict, because a request can hide in another if two programs read it differently: lines end with
// CR LF, fields are not folded, a Content-Length is one number, and Transfer-Encoding is "chunked"
// without a Content-Length.
HttpHeadReading read_http_head(std::string_view arrived, const HttpRules& rules,
                               std::string_view local_host = {});

}  // namespace attend
