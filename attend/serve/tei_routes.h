#pragma once

#include <vector>

#include "attend/http/http_message.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// What clients of text-embeddings-inference ask and read; such a server has one model, so that with
// several a request also names its `model`. Fields that ask for what is done anyway are accepted:
// "truncation_direction": "right", "raw_scores": false, "prompt_name": null.

// {"error", "error_type"}
HttpResponse tei_error(const RequestError& error);

// POST /: as /embed, or as /predict if the model answers labels.
void answer_tei_root(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_root_fields();

// POST /embed: {"inputs", "normalize", "truncate", "dimensions"} to an array of vectors.
void answer_tei_embed(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_embed_fields();

// POST /embed_all: {"inputs", "truncate"} to an array of the vectors of each input's tokens.
void answer_tei_embed_all(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_embed_all_fields();

// POST /similarity: {"inputs": {"source_sentence", "sentences"}, "parameters"} to the cosine of the
// first text's vector and each other's.
void answer_tei_similarity(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_similarity_fields();

// POST /predict: {"inputs", "truncate"} to [{"label", "score"}], the most probable first, by
// classifiers; to an array of such for inputs [["a"], ["b"]].
void answer_tei_predict(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_predict_fields();

// POST /tokenize: {"inputs", "add_special_tokens"} to an array of [{"id", "text", "special",
// "start", "stop"}]. Computes on a thread of the model's.
void answer_tei_tokenize(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_tokenize_fields();

// POST /decode: {"ids"} to an array of the texts of token ids.
void answer_tei_decode(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> tei_decode_fields();

// GET /info: what the model is and the server's limits.
void answer_tei_info(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
