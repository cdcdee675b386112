#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// Routes in the format of text-embeddings-inference, whose servers have one model. If there are
// several models here, `model` selects one; the default is the first. Fields that request the usual
// behaviour are accepted: "truncation_direction": "right", "raw_scores": false, "prompt_name":
// null.

// {"error", "error_type"}
HttpResponse tei_error(const RequestError& error);

// POST /: as /embed, or as /predict if the model answers labels.
void answer_tei_root(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_root_fields();

// POST /embed: {"inputs", "normalize", "truncate", "dimensions"} to an array of vectors.
void answer_tei_embed(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_embed_fields();

// POST /embed_all: {"inputs", "truncate"} to an array with the token vectors of each input.
void answer_tei_embed_all(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_embed_all_fields();

// POST /similarity: {"inputs": {"source_sentence", "sentences"}, "parameters"} to the cosines of
// the first text's vector and each other text's vector.
void answer_tei_similarity(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_similarity_fields();

// POST /predict: {"inputs", "truncate"} to [{"label", "score"}], the most probable label first, for
// classifiers. Inputs [["a"], ["b"]] give an array of such arrays.
void answer_tei_predict(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_predict_fields();

// POST /tokenize: {"inputs", "add_special_tokens"} to an array of [{"id", "text", "special",
// "start", "stop"}]. Runs on a thread of the model.
void answer_tei_tokenize(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_tokenize_fields();

// POST /decode: {"ids"} to an array with the texts of the token ids.
void answer_tei_decode(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_decode_fields();

// GET /info: type of the model and limits of the server.
void answer_tei_info(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
