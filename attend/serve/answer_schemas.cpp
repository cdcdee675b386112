#include "attend/serve/answer_schemas.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace attend {
namespace {

using nlohmann::json;

json text() { return {{"type", "string"}}; }
json flag() { return {{"type", "boolean"}}; }
json any_number() { return {{"type", "number"}}; }
json whole() { return {{"type", "integer"}, {"format", "int64"}}; }
json any_object() { return {{"type", "object"}}; }
json list(const json& items) { return {{"type", "array"}, {"items", items}}; }
json either(const std::vector<json>& schemas) { return {{"anyOf", schemas}}; }
json nullable(const json& schema) { return either({schema, {{"type", "null"}}}); }
json map_of(const json& values) { return {{"type", "object"}, {"additionalProperties", values}}; }

// An object with these members; all are required except `optional`.
json object(const std::vector<std::pair<std::string, json>>& members,
            const std::set<std::string>& optional = {}) {
  json properties = json::object(), required = json::array();
  for (const auto& [name, schema] : members) {
    properties[name] = schema;
    if (!optional.contains(name)) required.push_back(name);
  }
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

// Envelope of answers to texts: {"model", "answers"}.
json answers(const std::string& name) {
  return object({{"model", text()}, {"answers", list(schema_reference(name))}});
}

json usage(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, json>> members;
  members.reserve(names.size());
  for (const std::string& name : names) members.emplace_back(name, whole());
  return object(members);
}

void add_own(json& all) {
  all["Status"] = object({{"status", text()}});
  all["Document"] = any_object();
  all["Model"] = object({{"id", text()},
                         {"object", text()},
                         {"created", whole()},
                         {"owned_by", text()},
                         {"type", text()},
                         {"reads_text", flag()},
                         {"answers", flag()},
                         {"answers_numbers", flag()},
                         {"answers_label_sets", flag()},
                         {"answers_spans", flag()},
                         {"examples", list(text())}});
  all["Models"] = object({{"object", text()}, {"data", list(schema_reference("Model"))}});
  const json numbers = list(nullable(any_number()));
  all["LabelProbability"] = object({{"label", text()}, {"probability", nullable(any_number())}});
  all["Prediction"] = object({{"target", text()},
                              {"number", nullable(any_number())},
                              {"score", nullable(any_number())},
                              {"log_probability", nullable(any_number())},
                              {"complete", flag()},
                              {"start", whole()},
                              {"end", whole()},
                              {"labels", list(schema_reference("LabelProbability"))},
                              {"tokens", list(text())},
                              {"log_probabilities", numbers},
                              {"weights", list(numbers)}},
                             {"number", "score", "log_probability", "complete", "start", "end",
                              "labels", "tokens", "log_probabilities", "weights"});
  all["PredictedAnswer"] = object({{"source", text()},
                                   {"predictions", list(schema_reference("Prediction"))},
                                   {"cut", flag()},
                                   {"unknown", list(text())},
                                   {"source_tokens", list(text())}},
                                  {"source_tokens"});
  all["Predictions"] = answers("PredictedAnswer");
  all["Classification"] = object(
      {{"target", text()}, {"probability", nullable(any_number())}, {"source_token", text()}},
      {"source_token"});
  all["ClassifiedAnswer"] = object({{"source", text()},
                                    {"predictions", list(schema_reference("Classification"))},
                                    {"cut", flag()},
                                    {"unknown", list(text())}});
  all["Classifications"] = answers("ClassifiedAnswer");
  all["Explanations"] = any_object();
  all["Scores"] = any_object();
}

void add_of_openai(json& all) {
  all["Embedding"] = object({{"object", text()},
                             {"index", whole()},
                             {"embedding", either({list(any_number()), text()})}});
  all["Embeddings"] = object({{"object", text()},
                              {"data", list(schema_reference("Embedding"))},
                              {"model", text()},
                              {"usage", usage({"prompt_tokens", "total_tokens"})}});
  all["Logprobs"] =
      object({{"tokens", list(text())},
              {"token_logprobs", list(nullable(any_number()))},
              {"text_offset", list(whole())},
              {"top_logprobs", nullable(list(nullable(map_of(nullable(any_number())))))}});
  all["Choice"] = object({{"text", text()},
                          {"index", whole()},
                          {"logprobs", nullable(schema_reference("Logprobs"))},
                          {"finish_reason", nullable(text())}});
  all["Completion"] =
      object({{"id", text()},
              {"object", text()},
              {"created", whole()},
              {"model", text()},
              {"choices", list(schema_reference("Choice"))},
              {"usage", nullable(usage({"prompt_tokens", "completion_tokens", "total_tokens"}))}},
             {"usage"});
  all["Error"] = object({{"error", object({{"message", text()},
                                           {"type", text()},
                                           {"param", nullable(text())},
                                           {"code", nullable(text())}})},
                         {"detail", text()}},
                        {"detail"});
}

void add_of_cohere(json& all) {
  all["RankedDocument"] = object({{"index", whole()},
                                  {"relevance_score", any_number()},
                                  {"document", object({{"text", text()}})}},
                                 {"document"});
  all["VoyageDocument"] = object(
      {{"index", whole()}, {"relevance_score", any_number()}, {"document", text()}}, {"document"});
  all["RankedDocuments"] = object({{"model", text()},
                                   {"object", text()},
                                   {"results", list(schema_reference("RankedDocument"))},
                                   {"data", list(schema_reference("VoyageDocument"))},
                                   {"usage", usage({"total_tokens"})}});
  const json vectors = list(list(any_number()));
  const json by_type = object({{"float", vectors},
                               {"base64", list(text())},
                               {"int8", vectors},
                               {"uint8", vectors},
                               {"binary", vectors},
                               {"ubinary", vectors}},
                              {"float", "base64", "int8", "uint8", "binary", "ubinary"});
  all["TypedVectors"] = object({{"id", text()},
                                {"response_type", text()},
                                {"embeddings", either({vectors, by_type})},
                                {"texts", list(text())},
                                {"meta", object({{"api_version", object({{"version", text()}})},
                                                 {"billed_units", usage({"input_tokens"})}})}});
}

void add_of_tei(json& all) {
  all["Vectors"] = list(list(any_number()));
  all["TokenVectors"] = list(list(list(any_number())));
  all["Similarities"] = list(any_number());
  all["Label"] = object({{"label", text()}, {"score", nullable(any_number())}});
  all["Labels"] = either({list(schema_reference("Label")), list(list(schema_reference("Label")))});
  all["RankedText"] =
      object({{"index", whole()}, {"score", nullable(any_number())}, {"text", text()}}, {"text"});
  all["RankedTexts"] = list(schema_reference("RankedText"));
  all["GeneratedTexts"] = list(
      object({{"generated_text", text()}, {"translation_text", text()}, {"summary_text", text()}},
             {"translation_text", "summary_text"}));
  all["PassageAnswer"] = object({{"answer", text()},
                                 {"score", nullable(any_number())},
                                 {"start", whole()},
                                 {"end", whole()}});
  all["RootAnswers"] = either(
      {schema_reference("Vectors"), schema_reference("Labels"), schema_reference("GeneratedTexts"),
       schema_reference("PassageAnswer"), list(schema_reference("PassageAnswer"))});
  all["Token"] = object({{"id", whole()},
                         {"text", text()},
                         {"special", flag()},
                         {"start", nullable(whole())},
                         {"stop", nullable(whole())}});
  all["Tokens"] = list(list(schema_reference("Token")));
  all["Texts"] = list(text());
  all["Info"] = object({{"model_id", text()},
                        {"model_sha", nullable(text())},
                        {"model_dtype", text()},
                        {"model_type", any_object()},
                        {"max_concurrent_requests", whole()},
                        {"max_input_length", whole()},
                        {"max_batch_tokens", whole()},
                        {"max_batch_requests", nullable(whole())},
                        {"tokenization_workers", whole()},
                        {"max_client_batch_size", whole()},
                        {"auto_truncate", flag()},
                        {"version", text()}});
  all["TeiError"] = object({{"error", text()}, {"error_type", text()}});
}

}  // namespace

json schema_reference(const std::string& name) {
  return {{"$ref", "#/components/schemas/" + name}};
}

json answer_schemas() {
  json all = json::object();
  add_own(all);
  add_of_openai(all);
  add_of_cohere(all);
  add_of_tei(all);
  return all;
}

}  // namespace attend
