#pragma once

#include "attend/http/http_message.h"

namespace attend {

class Service;

// GET /openapi.json: what the server takes, in OpenAPI 3.1, made of the table of routes and their
// fields.
void answer_openapi(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
