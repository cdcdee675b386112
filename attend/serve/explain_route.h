#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/explain: {"text", "method", ..} to what `attend explain` makes of it. The answer is
// {"model", "explanations": [what `attend explain --json` prints, an object for each map]}, or with
// "format" a picture, a page, or what a page holds. The fields are those of the table in
// explain_route.cpp, which are the options of `attend explain`.
void answer_explain(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> explain_fields();

}  // namespace attend
