#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/score: {"answers": [..], "references": [..], "metrics", ..} to the output of `attend
// score --json`, or with "sentences" to {"sentences": [output per answer]}.
void answer_score(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> score_fields();

}  // namespace attend
