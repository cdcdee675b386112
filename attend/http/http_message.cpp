#include "attend/http/http_message.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

namespace attend {
namespace {

struct Reason {
  int status;
  std::string_view text;
};

constexpr Reason reasons[] = {{200, "OK"},
                              {400, "Bad Request"},
                              {401, "Unauthorized"},
                              {403, "Forbidden"},
                              {404, "Not Found"},
                              {405, "Method Not Allowed"},
                              {408, "Request Timeout"},
                              {411, "Length Required"},
                              {413, "Content Too Large"},
                              {415, "Unsupported Media Type"},
                              {417, "Expectation Failed"},
                              {421, "Misdirected Request"},
                              {422, "Unprocessable Content"},
                              {429, "Too Many Requests"},
                              {431, "Request Header Fields Too Large"},
                              {500, "Internal Server Error"},
                              {503, "Service Unavailable"},
                              {504, "Gateway Timeout"},
                              {505, "HTTP Version Not Supported"}};

void add_field(std::string& head, std::string_view name, std::string_view value) {
  for (const std::string_view text : {name, value})
    if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; }))
      throw std::logic_error("a field of a response must be printable ASCII");
  fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
}

}  // namespace

std::string_view http_reason(int status) {
  for (const Reason& reason : reasons)
    if (reason.status == status) return reason.text;
  throw std::logic_error(fmt::format("the server sends no status {}", status));
}

HttpResponse http_error(int status, const std::string& message) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = message + '\n'};
}

std::string http_response_head(const HttpResponse& response, const std::string& id,
                               const HttpFraming& framing) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, http_reason(response.status));
  add_field(head, "Date",
            fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(std::time(nullptr))));
  add_field(head, "Content-Type", response.type);
  if (framing.has_length)
    add_field(head, "Content-Length", std::to_string(response.body.size()));
  else if (framing.takes_chunks)
    add_field(head, "Transfer-Encoding", "chunked");
  add_field(head, "Connection", framing.keeps_alive ? "keep-alive" : "close");
  add_field(head, "Cache-Control", "no-store");
  add_field(head, "X-Content-Type-Options", "nosniff");
  if (!id.empty()) add_field(head, "X-Request-Id", id);
  if (!framing.origin.empty()) {
    add_field(head, "Access-Control-Allow-Origin", framing.origin);
    add_field(head, "Access-Control-Expose-Headers", "X-Request-Id, X-Should-Retry, Retry-After");
    add_field(head, "Vary", "Origin");
  }
  for (const auto& [name, value] : response.fields) add_field(head, name, value);
  return head + "\r\n";
}

}  // namespace attend
