#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/completions as OpenAI's clients ask and read it. A language model continues the prompt;
// for other models it is the source, and the text is what they answer. Answers are those of
// Model::answer, cut at the first of the stops; with `stream` they come as events while they grow.
void answer_completions(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> completions_fields();

}  // namespace attend
