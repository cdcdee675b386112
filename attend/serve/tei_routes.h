#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// What clients of text-embeddings-inference ask and read; such a server has one model, so that with
// several a request also names its `model`.

// {"error", "error_type"}
HttpResponse tei_error(const RequestError& error);

// POST /embed: {"inputs", "normalize", "truncate", "dimensions"} to an array of vectors.
void answer_tei_embed(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_embed_fields();

// POST /predict: {"inputs", "truncate"} to [{"label", "score"}], the most probable first, by
// classifiers; to an array of such for inputs [["a"], ["b"]].
void answer_tei_predict(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_predict_fields();

// POST /tokenize: {"inputs"} to an array of [{"id", "text", "special", "start", "stop"}].
void answer_tei_tokenize(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_tokenize_fields();

// GET /info: what the model is and the server's limits.
void answer_tei_info(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
