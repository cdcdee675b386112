#pragma once

#include "attend/http/http_message.h"

namespace attend {

class Service;

// GET /, /page.css and /page.js: a page to enter texts and see answers and attention. It calls the
// other routes of this server and no other host.
void answer_page_body(Service& service, const HttpRequest& request, const HttpReply& reply);
void answer_page_style(Service& service, const HttpRequest& request, const HttpReply& reply);
void answer_page_script(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
