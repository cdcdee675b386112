#pragma once

#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/explain: {"text", "method", ..} to the output of `attend explain`. The answer is
// {"model", "explanations": [objects of `attend explain --json`, one per map]}; "format" selects a
// file of explain_files(), or the data of a page, instead. The fields are options of `attend
// explain`; see the table in explain_route.cpp.
void answer_explain(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> explain_fields();

// Content types of the formats, other than JSON.
std::vector<std::string> explain_types();

}  // namespace attend
