#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/predict: {"texts": [..], "beam", ..} to {"model", "answers": [answer_json() of each]}.
// The fields are options of `attend predict`; see the table in predict_route.cpp.
void answer_predict(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> predict_fields();

}  // namespace attend
