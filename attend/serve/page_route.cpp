#include <string>

#include "attend/serve/handlers-inl.h"
#include "attend/serve/page_files-inl.h"

namespace attend {
namespace {

// The page runs, loads and requests only content of this server, and must not be framed.
constexpr const char* page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace

void answer_page_body(Service&, const HttpRequest&, const HttpReply& reply) {
  reply.send(
      {.type = "text/html; charset=utf-8",
       .body = std::string(serve_page_body()),
       .fields = {{"Content-Security-Policy", page_policy}, {"Referrer-Policy", "no-referrer"}}});
}

void answer_page_style(Service&, const HttpRequest&, const HttpReply& reply) {
  reply.send({.type = "text/css; charset=utf-8", .body = std::string(serve_page_style())});
}

void answer_page_script(Service&, const HttpRequest&, const HttpReply& reply) {
  reply.send({.type = "text/javascript; charset=utf-8", .body = std::string(serve_page_script())});
}

}  // namespace attend
