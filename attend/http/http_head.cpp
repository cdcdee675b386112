#include "attend/http/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <locale>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"

namespace attend {
namespace {

namespace beast = boost::beast::http;
using beast::field;
using Fields = beast::request<beast::empty_body>;
using Check = std::optional<HttpRefusal>;

// Numbers with this many digits fit into 64 bits.
constexpr size_t length_digits = 18;
constexpr size_t request_id_bytes = 64;
// Empty lines; RFC 9112, 2.2: a client may send one after the body of its last request.
constexpr int skipped_lines = 2;

bool is_visible(char c) { return c >= 0x21 && c <= 0x7e; }

std::string small(std::string_view text) {
  return boost::algorithm::to_lower_copy(std::string(text), std::locale::classic());
}

HttpRefusal refuse(int status, std::string message) { return {status, std::move(message)}; }

// Characters of a list of field names.
bool is_of_list(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == ',' || c == ' ';
}

bool has_body(const HttpHead& head) { return head.has_chunks || head.content_length > 0; }

// Method, target and version, separated by single spaces.
Check check_request_line(std::string_view line) {
  if (std::count(line.begin(), line.end(), ' ') != 2 ||
      !std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || is_visible(c); }))
    return refuse(400, "the first line must be a method, a target and HTTP/1.1, one space between");
  if (line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0")) return {};
  if (line.find(" HTTP/") == std::string_view::npos)
    return refuse(400, "the first line must end with HTTP/1.1");
  return refuse(505, "the server speaks HTTP/1.1 and HTTP/1.0; send HTTP/1.1");
}

Check check_line(std::string_view line, size_t number) {
  if (number == 0) return check_request_line(line);
  if (line.starts_with(' ') || line.starts_with('\t'))
    return refuse(400, "a field begins with white space; send each in one line");
  if (number > http_head_fields)
    return refuse(431, fmt::format("over {} fields; send fewer", http_head_fields));
  for (const char c : line)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f)
      return refuse(400, "a field holds a control character; leave it out");
  return {};
}

// Checks the lines as they arrive. Sets `end` to the position after the empty line, if it arrived.
Check check_lines(std::string_view text, size_t& end) {
  const std::string_view within = text.substr(0, http_head_bytes);
  size_t begin = 0;
  for (size_t number = 0;; ++number) {
    const size_t stop = within.find_first_of("\r\n", begin);
    if (stop == std::string_view::npos || stop + 1 == within.size()) {
      if (stop != std::string_view::npos && within[stop] == '\n') break;
      if (text.size() < http_head_bytes) return {};
      return refuse(431,
                    fmt::format("the head of a request has at most {} bytes; send fewer fields",
                                http_head_bytes));
    }
    if (within[stop] == '\n' || within[stop + 1] != '\n') break;
    const std::string_view line = within.substr(begin, stop - begin);
    begin = stop + 2;
    if (number > 0 && line.empty()) {
      end = begin;
      return {};
    }
    if (Check refusal = check_line(line, number)) return refusal;
  }
  return refuse(400, "a line must end with CR LF, and hold neither of them");
}

// Removes a valid port, if any.
std::string_view without_port(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.find(']', colon) != std::string_view::npos)
    return host;
  const std::string_view port = host.substr(colon + 1);
  const auto number = parse_number<uint16_t>(port);
  return number && *number > 0 ? host.substr(0, colon) : host;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// `host`: in lower case.
bool is_served(std::string_view host, const HttpRules& rules, std::string_view local_host) {
  if (rules.takes_any_host || contains(rules.names, host)) return true;
  const std::string_view name = without_port(host);
  if (contains(rules.names, name)) return true;
  const std::string whole = std::string(host) + (name == host ? rules.default_port : "");
  return whole == local_host || contains(rules.hosts, whole);
}

// Removes scheme and host from an absolute target; they then replace the Host field. Sets `host` to
// the requested host in lower case.
Check check_target(const Fields& fields, const HttpRules& rules, std::string_view local_host,
                   HttpHead& head, std::string& host) {
  const auto hosts = fields.count(field::host);
  if (hosts > 1 || (hosts == 0 && head.takes_chunks))
    return refuse(400, "a request must have one field Host");
  bool names_host = hosts > 0, is_absolute = false;
  host = small(std::string_view(fields[field::host]));
  std::string_view target{fields.target()};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!small(target.substr(0, scheme.size())).starts_with(scheme)) continue;
    const size_t slash = std::min(target.find_first_of("/?", scheme.size()), target.size());
    host = small(target.substr(scheme.size(), slash - scheme.size()));
    target.remove_prefix(slash);
    if (target.empty()) target = "/";
    names_host = is_absolute = true;
    break;
  }
  if (!target.starts_with('/') || target.find_first_of("#\\") != std::string_view::npos)
    return refuse(400, "a target must begin with / and hold neither # nor \\");
  head.target = target;
  head.path = target.substr(0, target.find('?'));
  const bool is_open = !is_absolute && contains(rules.open_paths, head.path);
  if (!names_host || is_open || is_served(host, rules, local_host)) return {};
  return refuse(421, fmt::format("host {} is not served here; --host of the server names more",
                                 in_quotes(host)));
}

// Refuses requests of foreign pages, because a browser sends simple requests without a preflight.
// `host`: the requested host in lower case.
Check check_origin(const Fields& fields, const HttpRules& rules, std::string_view local_host,
                   std::string_view host, HttpHead& head) {
  if (fields.count(field::origin) == 0) return {};
  const std::string origin = small(std::string_view(fields[field::origin]));
  const size_t slashes = origin.find("//");
  const bool is_named = contains(rules.origins, origin);
  const auto is_own = [&] {
    // Only browsers send this field, and no page can change it.
    constexpr std::string_view site = "Sec-Fetch-Site";
    if (fields.count(site) == 1 && fields[site] == "same-origin") return true;
    if (slashes == std::string::npos) return false;
    const std::string_view other = std::string_view(origin).substr(slashes + 2);
    return other == host || (!rules.takes_any_host && is_served(other, rules, local_host));
  };
  if (fields.count(field::origin) > 1 || (!is_named && !is_own()))
    return refuse(403,
                  "the request comes from a page of another site, which is not allowed; "
                  "--cors-origin of the server names more");
  if (!is_named) return {};
  head.origin = origin;
  head.asks_permission =
      head.method == "OPTIONS" && fields.count(field::access_control_request_method) > 0;
  const std::string_view asked{fields[field::access_control_request_headers]};
  if (std::all_of(asked.begin(), asked.end(), is_of_list)) head.asked_fields = asked;
  return {};
}

Check check_chunks(const Fields& fields, HttpHead& head) {
  if (fields.count(field::content_length) > 0)
    return refuse(400, "a request must not have both Content-Length and Transfer-Encoding");
  if (fields.count(field::transfer_encoding) > 1 || !head.takes_chunks ||
      small(std::string_view(fields[field::transfer_encoding])) != "chunked")
    return refuse(411,
                  "the server supports only Transfer-Encoding chunked, of HTTP/1.1; send the body "
                  "with a Content-Length");
  head.has_chunks = true;
  return {};
}

Check check_length(const Fields& fields, const HttpRules& rules, HttpHead& head) {
  if (fields.count(field::transfer_encoding) > 0) return check_chunks(fields, head);
  const auto lengths = fields.count(field::content_length);
  if (lengths > 1) return refuse(400, "a request must have at most one Content-Length");
  head.lacks_length = lengths == 0 && head.method == "POST";
  if (lengths == 0) return {};
  const std::string_view text{fields[field::content_length]};
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return refuse(400, "Content-Length must be a number, only digits");
  const auto length = parse_number<int64_t>(text);
  if (text.size() > length_digits || !length || *length > rules.body_bytes)
    return body_too_large(rules.body_bytes);
  head.content_length = *length;
  return {};
}

Check check_body_type(const Fields& fields, const HttpHead& head) {
  if (!has_body(head)) return {};
  for (const auto& one : fields) {
    if (one.name() != field::content_encoding || small(std::string_view(one.value())) == "identity")
      continue;
    HttpRefusal refusal = refuse(
        415, fmt::format("the server does not support Content-Encoding {}; send the body as it is",
                         in_quotes(std::string_view(one.value()))));
    refusal.fields = {{"Accept-Encoding", "identity"}};
    return refusal;
  }
  if (head.method != "POST") return {};
  const std::string type = small(std::string_view(fields[field::content_type]));
  const size_t end = type.find_first_of("; \t");
  if (fields.count(field::content_type) == 1 && type.substr(0, end) == "application/json")
    return {};
  return refuse(415, "a body must be JSON; send Content-Type: application/json");
}

Check check_expectation(const Fields& fields, HttpHead& head) {
  if (fields.count(field::expect) == 0) return {};
  if (fields.count(field::expect) > 1 ||
      small(std::string_view(fields[field::expect])) != "100-continue")
    return refuse(417, "the server supports only the expectation 100-continue");
  head.awaits_continue = head.takes_chunks && has_body(head);
  return {};
}

bool is_request_id(std::string_view id) {
  return !id.empty() && id.size() <= request_id_bytes &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

Check check_fields(const Fields& fields, const HttpRules& rules, std::string_view local_host,
                   HttpHead& head) {
  std::string host;
  if (Check refusal = check_target(fields, rules, local_host, head, host)) return refusal;
  if (Check refusal = check_origin(fields, rules, local_host, host, head)) return refusal;
  if (Check refusal = check_length(fields, rules, head)) return refusal;
  if (Check refusal = check_body_type(fields, head)) return refusal;
  return check_expectation(fields, head);
}

HttpHeadReading read_fields(std::string_view text, const HttpRules& rules,
                            std::string_view local_host) {
  beast::request_parser<beast::empty_body> parser;
  parser.header_limit(2 * http_head_bytes);  // check_lines applies the actual limit
  parser.body_limit(boost::none);            // check_length applies the actual limit
  boost::system::error_code error;
  parser.put(boost::asio::buffer(text.data(), text.size()), error);
  if (error || !parser.is_header_done())
    return refuse(400, "this is not an HTTP request: " + error.message());
  const Fields& fields = parser.get();
  HttpHead head;
  head.method = std::string_view(fields.method_string());
  head.takes_chunks = fields.version() == 11;
  head.keeps_alive = head.takes_chunks && fields.keep_alive();
  head.authorization = std::string_view(fields[field::authorization]);
  if (const std::string_view id{fields["X-Request-Id"]}; is_request_id(id)) head.request_id = id;
  if (Check refusal = check_fields(fields, rules, local_host, head)) {
    refusal->head = std::move(head);
    return *refusal;
  }
  return head;
}

}  // namespace

HttpRefusal body_too_large(int64_t limit) {
  return refuse(413,
                fmt::format("a body has at most {} bytes; send fewer, or raise --body-bytes of the "
                            "server",
                            limit));
}

HttpHeadReading read_http_head(std::string_view arrived, const HttpRules& rules,
                               std::string_view local_host) {
  size_t skipped = 0;
  for (int line = 0; arrived.substr(skipped).starts_with("\r\n"); ++line, skipped += 2)
    if (line == skipped_lines) return refuse(400, "a request must begin with its method");
  const std::string_view text = arrived.substr(skipped);
  if (text.empty() || text == "\r") return HttpIncomplete{};
  if (text[0] < 'A' || text[0] > 'Z')
    return refuse(400, "a request must begin with its method, in capital letters");
  size_t end = 0;
  if (Check refusal = check_lines(text, end)) return *refusal;
  if (end == 0) return HttpIncomplete{};
  HttpHeadReading reading = read_fields(text.substr(0, end), rules, local_host);
  if (auto* head = std::get_if<HttpHead>(&reading)) head->size = skipped + end;
  return reading;
}

}  // namespace attend
