#include <string>
#include <utility>
#include <vector>

#include "attend/serve/handlers-inl.h"
#include "attend/serve/routes.h"

namespace attend {
namespace {

Route page(std::string path, std::string name, RouteAnswer* answer, std::string type) {
  return {.method = "GET",
          .path = std::move(path),
          .name = std::move(name),
          .answer = answer,
          .types = {std::move(type)}};
}

// For probes, which may call before the models are loaded.
Route probe(std::string path, std::string name, RouteAnswer* answer, std::string schema) {
  return {.method = "GET",
          .path = std::move(path),
          .name = std::move(name),
          .answer = answer,
          .schema = std::move(schema),
          .takes_any_host = true};
}

Route get(std::string path, std::string name, RouteAnswer* answer, std::string schema) {
  return {.method = "GET",
          .path = std::move(path),
          .name = std::move(name),
          .needs = RouteNeeds::models,
          .needs_key = true,
          .answer = answer,
          .schema = std::move(schema)};
}

Route post(std::string path, std::string name, RouteAnswer* answer, RouteFields* fields,
           std::string schema, RouteNeeds needs = RouteNeeds::queue) {
  return {.method = "POST",
          .path = std::move(path),
          .name = std::move(name),
          .needs = needs,
          .needs_key = true,
          .answer = answer,
          .fields = fields,
          .schema = std::move(schema)};
}

// With errors in the format of text-embeddings-inference.
Route with_tei_errors(Route route) {
  route.error = tei_error;
  return route;
}

Route with_details(Route route) {
  route.error = detailed_error;
  return route;
}

Route with_types(Route route, const std::vector<std::string>& more) {
  route.types.insert(route.types.end(), more.begin(), more.end());
  return route;
}

std::vector<Route> page_routes() {
  return {page("/", "page", answer_page_body, "text/html"),
          page("/page.css", "page_style", answer_page_style, "text/css"),
          page("/page.js", "page_script", answer_page_script, "text/javascript")};
}

std::vector<Route> own_routes() {
  Route metrics = page("/metrics", "metrics", answer_metrics, "text/plain");
  metrics.needs_key = true;
  Route document = probe("/openapi.json", "openapi", answer_openapi, "Document");
  document.takes_any_host = false;
  return {
      probe("/health", "health", answer_alive, "Status"),
      probe("/livez", "livez", answer_alive, "Status"),
      probe("/ready", "ready", answer_ready, "Status"),
      probe("/readyz", "readyz", answer_ready, "Status"),
      document,
      metrics,
      get("/v1/models", "models", answer_models, "Models"),
      get("/v1/models/{model}", "model", answer_model, "Model"),
      post("/v1/predict", "predict", answer_predict, predict_fields, "Predictions"),
      post("/v1/classify", "classify", answer_classify, classify_fields, "Classifications"),
      with_details(post("/v1/rerank", "rerank", answer_rerank, rerank_fields, "RankedDocuments")),
      with_details(
          post("/v2/rerank", "rerank_v2", answer_rerank, rerank_fields, "RankedDocuments")),
      with_details(
          post("/v1/embeddings", "embeddings", answer_embeddings, embeddings_fields, "Embeddings")),
      post("/v1/embed", "cohere_embed_v1", answer_older_cohere_embed, cohere_embed_fields,
           "TypedVectors"),
      post("/v2/embed", "cohere_embed_v2", answer_cohere_embed, cohere_embed_fields,
           "TypedVectors"),
      with_types(post("/v1/explain", "explain", answer_explain, explain_fields, "Explanations",
                      RouteNeeds::models),
                 explain_types()),
      with_types(post("/v1/completions", "completions", answer_completions, completions_fields,
                      "Completion"),
                 {"text/event-stream"}),
      post("/v1/score", "score", answer_score, score_fields, "Scores", RouteNeeds::nothing),
  };
}

std::vector<Route> tei_routes() {
  return {
      with_tei_errors(post("/", "tei_root", answer_tei_root, tei_root_fields, "RootAnswers")),
      with_tei_errors(post("/embed", "tei_embed", answer_tei_embed, tei_embed_fields, "Vectors")),
      with_tei_errors(post("/embed_all", "tei_embed_all", answer_tei_embed_all,
                           tei_embed_all_fields, "TokenVectors")),
      with_tei_errors(post("/similarity", "tei_similarity", answer_tei_similarity,
                           tei_similarity_fields, "Similarities")),
      with_tei_errors(
          post("/predict", "tei_predict", answer_tei_predict, tei_predict_fields, "Labels")),
      with_tei_errors(
          post("/rerank", "tei_rerank", answer_tei_rerank, tei_rerank_fields, "RankedTexts")),
      with_tei_errors(post("/tokenize", "tei_tokenize", answer_tei_tokenize, tei_tokenize_fields,
                           "Tokens", RouteNeeds::models)),
      with_tei_errors(post("/decode", "tei_decode", answer_tei_decode, tei_decode_fields, "Texts",
                           RouteNeeds::models)),
      with_details(post("/embeddings", "tei_embeddings", answer_embeddings, embeddings_fields,
                        "Embeddings")),
      with_tei_errors(get("/info", "tei_info", answer_tei_info, "Info")),
      probe("/ping", "ping", answer_alive, "Status"),
  };
}

}  // namespace

const std::vector<Route>& route_table() {
  static const std::vector<Route> table = [] {
    std::vector<Route> all;
    for (const auto& part : {page_routes(), own_routes(), tei_routes()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

}  // namespace attend
