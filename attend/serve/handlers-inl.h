#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/decode/request.h"
#include "attend/inference/model.h"
#include "attend/serve/routes.h"

// Handlers of the routes in route_table(), and the fields of their requests.
namespace attend {

struct ServedModel;

// GET /, /page.css and /page.js: a page to enter texts and see answers and attention. It calls the
// other routes of this server and no other host.
RouteAnswer answer_page_body, answer_page_style, answer_page_script;

// GET /openapi.json: OpenAPI 3.1 document, generated from the route table and the fields of its
// requests.
RouteAnswer answer_openapi;

// GET /health, /livez and /ping: 200 while the server runs.
RouteAnswer answer_alive;
// GET /ready and /readyz: 503 until the models are loaded, and while the server shuts down.
RouteAnswer answer_ready;
// GET /metrics, for Prometheus.
RouteAnswer answer_metrics;
// GET /v1/models, and /v1/models/NAME for a single model, in OpenAI's format.
RouteAnswer answer_models, answer_model;

// POST /v1/predict: {"texts": [..], "beam", ..} to {"model", "answers": [answer_json() of each]}.
// The fields are options of `attend predict`; see the table in predict_route.cpp.
RouteAnswer answer_predict;
RouteFields predict_fields;

// POST /v1/classify: {"texts": [..], "model", "nbest"} to {"model", "answers":
// [classification_json() of each]}, for models that answer labels.
RouteAnswer answer_classify;
RouteFields classify_fields;

// POST /v1/rerank and /v2/rerank as Jina's, Cohere's and Voyage's clients send it: {"model",
// "query", "documents", "top_n" or "top_k", "return_documents", "max_tokens_per_doc",
// "max_chunks_per_doc", "truncation"} to {"results": [{"index", "relevance_score", "document":
// {"text"}}], "data": the same with a document as a string}, the most relevant document first, for
// classifiers of pairs that answer one number. Long documents are cut unless `truncation` is false.
RouteAnswer answer_rerank;
RouteFields rerank_fields;

// POST /v1/embeddings in OpenAI's format, with Voyage's fields: for each input the mean of its
// token vectors, scaled to length 1. Inputs without tokens are refused, and without `truncation`
// also inputs longer than the model reads.
RouteAnswer answer_embeddings;
RouteFields embeddings_fields;

// POST /v2/embed and /v1/embed as Cohere's clients send it: {"model", "texts", "input_type",
// "embedding_types", "output_dimension", "truncate", "max_tokens"} to {"id", "response_type",
// "embeddings": {type: [vectors]}, "texts", "meta"}. Without embedding_types, /v2/embed answers
// floats, and /v1/embed an array of vectors instead of the object. The vectors equal the ones of
// /v1/embeddings.
RouteAnswer answer_cohere_embed, answer_older_cohere_embed;
RouteFields cohere_embed_fields;

// POST /v1/explain: {"text", "method", ..} to the output of `attend explain`. The answer is
// {"model", "explanations": [objects of `attend explain --json`, one per map]}; "format" selects a
// file of explain_files(), or the data of a page, instead. The fields are options of `attend
// explain`; see the table in explain_route.cpp.
RouteAnswer answer_explain;
RouteFields explain_fields;
// Content types of the formats, other than JSON.
std::vector<std::string> explain_types();

// POST /v1/completions in OpenAI's format. A language model continues the prompt. Other models read
// the prompt as a source, and their answer is the text. Answers equal Model::answer, cut at the
// first stop. With `stream` they are sent as events while they grow.
RouteAnswer answer_completions;
RouteFields completions_fields;

// POST /v1/score: {"answers": [..], "references": [..], "metrics", ..} to the output of `attend
// score --json`, or with "sentences" to {"sentences": [output per answer]}.
RouteAnswer answer_score;
RouteFields score_fields;

// Routes in the format of text-embeddings-inference. Its servers have one model; here the optional
// field `model` selects one of several, and the default is the first. Fields that request the usual
// behaviour are accepted: "truncation_direction": "right", "raw_scores": false. "prompt_name"
// selects a prompt of the model; null means its usual prompt.

// {"error", "error_type"}
HttpResponse tei_error(const RequestError& error);

// End at which a long text is cut. Some clients send the second spelling.
enum class CutEnd { right, capitalised_right };
inline EnumNames names_of(CutEnd) { return {"right", "Right"}; }

// The named model; clients usually name none, which means the first.
const ServedModel& tei_model(const Service& service, const std::string& name);

// POST /: as /embed, or as /predict if the model answers labels. If the model answers texts,
// {"inputs", "parameters": {"src_lang", "tgt_lang", "max_new_tokens", ..}} to [{"generated_text",
// "translation_text", "summary_text"}]. If it answers with parts of passages, {"inputs":
// {"question", "context"}} to {"answer", "score", "start", "end"}.
RouteAnswer answer_tei_root;
RouteFields tei_root_fields;
// POST /embed: {"inputs", "normalize", "truncate", "dimensions"} to an array of vectors.
RouteAnswer answer_tei_embed;
RouteFields tei_embed_fields;
// POST /embed_all: {"inputs", "truncate"} to an array with the token vectors of each input.
RouteAnswer answer_tei_embed_all;
RouteFields tei_embed_all_fields;
// POST /similarity: {"inputs": {"source_sentence", "sentences"}, "parameters"} to the cosines of
// the first text's vector and each other text's vector.
RouteAnswer answer_tei_similarity;
RouteFields tei_similarity_fields;
// POST /predict: {"inputs", "truncate"} to [{"label", "score"}], the most probable label first, for
// classifiers. Inputs [["a"], ["b"]] give an array of such arrays.
RouteAnswer answer_tei_predict;
RouteFields tei_predict_fields;
// POST /rerank: {"query", "texts", "raw_scores", "return_text", "truncate", "top_n"} to [{"index",
// "score", "text"}], the most relevant text first, for the same models as /v1/rerank. Scores are
// probabilities, or with raw_scores logits.
RouteAnswer answer_tei_rerank;
RouteFields tei_rerank_fields;
// POST /tokenize: {"inputs", "add_special_tokens"} to an array of [{"id", "text", "special",
// "start", "stop"}]. Runs on a thread of the model.
RouteAnswer answer_tei_tokenize;
RouteFields tei_tokenize_fields;
// POST /decode: {"ids"} to an array with the texts of the token ids.
RouteAnswer answer_tei_decode;
RouteFields tei_decode_fields;
// GET /info: type of the model and limits of the server.
RouteAnswer answer_tei_info;

// Whether answers are a label, any number of labels, or a label per token.
bool gives_labels(const AnswerKind& kind);

// Requests for the `maximum` most probable labels of each text; 0: all labels. RequestError (422)
// if the model has no labels.
std::vector<Request> label_requests(const ServedModel& served,
                                    const std::vector<std::string>& texts, int64_t maximum);

// Form of the vectors of texts.
struct VectorForm {
  int64_t dimensions = 0;       // keep only the first `dimensions` numbers; 0: all
  bool is_normalised = true;    // scale to length 1
  bool is_cut = false;          // truncate longer texts; otherwise refuse them
  const char* field = "input";  // fields of the request, for errors
  const char* dimensions_field = "dimensions";
};

// Maximum number of texts in a request for vectors; OpenAI's limit.
constexpr double max_vector_inputs = 2048;

// Encoding of a vector of length 1 in JSON: numbers, the float32s as base64, or bytes as numbers
// (quantised_unit()).
enum class VectorEncoding { numbers, base64, int8, uint8, binary, ubinary };
inline EnumNames names_of(VectorEncoding) {
  return {"float", "base64", "int8", "uint8", "binary", "ubinary"};
}

// Names of the prompts of queries and of documents, as in encode_query() and encode_document() of
// sentence-transformers.
inline std::vector<std::string> query_prompts() { return {"query"}; }
inline std::vector<std::string> document_prompts() { return {"document", "passage", "corpus"}; }

// The model's first prompt with a text among these names; if it lacks all of them, its usual
// prompt. sentence-transformers 6 writes an empty prompt "document" next to "passage".
std::string prompt_among(const Model& model, const std::vector<std::string>& names);

// The JSON of a vector of length 1.
std::string encoded(const std::vector<float>& vector, VectorEncoding encoding);

// Throws RequestError if text `index` has no vector (422) or is too long (400).
void check_vector(const Model& model, const Embedding& embedding, size_t index,
                  const VectorForm& form);

// The vector of text `index`. Errors as check_vector(), and (422) if `dimensions` exceeds the
// vector's length.
std::vector<float> text_vector(const Model& model, const Embedding& embedding, size_t index,
                               const VectorForm& form);

// The vector as JSON, with the fewest digits that preserve each float32.
std::string numbers_json(const std::vector<float>& vector);

}  // namespace attend
