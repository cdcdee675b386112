#pragma once

#include "attend/http/http_message.h"

namespace attend {

class Service;

// GET /, /page.css and /page.js: a page on which people type texts and see answers and what was
// looked at. It asks this server's other routes, and no other host.
void answer_page_body(Service& service, const HttpRequest& request, const HttpReply& reply);
void answer_page_style(Service& service, const HttpRequest& request, const HttpReply& reply);
void answer_page_script(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
