#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/predict: {"texts": [..], "beam", ..} to {"model", "answers": [answer_json() of each]}.
// The fields are those of the table in predict_route.cpp, which are the options of
// `attend predict`.
void answer_predict(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> predict_fields();

}  // namespace attend
