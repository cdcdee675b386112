#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/completions in OpenAI's format. A language model continues the prompt; for other models
// the prompt is the source and the text is their answer. Answers are those of Model::answer, cut at
// the first stop. With `stream` they are sent as events while they grow.
void answer_completions(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> completions_fields();

}  // namespace attend
