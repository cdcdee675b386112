#pragma once

#include "attend/http/http_message.h"

namespace attend {

class Service;

// GET /openapi.json: OpenAPI 3.1 document, generated from the route table and the fields of its
// requests.
void answer_openapi(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
