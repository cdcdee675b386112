#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/score: {"answers": [..], "references": [..], "metrics", ..} to what `attend score
// --json` prints, or with "sentences" to {"sentences": [what it prints of each]}.
void answer_score(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> score_fields();

}  // namespace attend
