#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/answer_queue.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;
struct ServedModel;

// POST /v1/classify: {"texts": [..], "model", "nbest"} to {"model", "answers":
// [classification_json() of each]}, for models that answer labels.
void answer_classify(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> classify_fields();

// Question for the `most` most probable labels of each text; 0: all labels. RequestError (422) if
// the model has no labels.
Question label_question(const ServedModel& served, std::vector<std::string> texts, int64_t maximum);

}  // namespace attend
