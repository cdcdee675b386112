#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"

namespace attend {
namespace {

using nlohmann::json;

// Use of the vectors, which selects a prompt of the model.
enum class InputType { search_document, search_query, classification, clustering };
EnumNames names_of(InputType) {
  return {"search_document", "search_query", "classification", "clustering"};
}

// Names of the prompts for a use.
std::vector<std::string> prompts_for(InputType type) {
  switch (type) {
    case InputType::search_document:
      return document_prompts();
    case InputType::search_query:
      return query_prompts();
    case InputType::classification:
    case InputType::clustering:
      break;
  }
  return {name_of(type)};
}

// End at which a long text is cut, if it is.
enum class Truncation { none, end };
EnumNames names_of(Truncation) { return {"NONE", "END"}; }

struct CohereEmbedRequest {
  std::string model;
  std::vector<std::string> texts, types;
  InputType input_type = InputType::search_document;
  Truncation truncation = Truncation::end;
  int64_t dimensions = 0, longest = 0;

  std::vector<RequestField> fields() {
    const EnumNames encodings = names_of(VectorEncoding{});
    constexpr double max_input_tokens = 1 << 20;
    return {{"model", &model},
            {"texts", &texts, 1, max_vector_inputs, true},
            {"input_type", &input_type, 0, 0, false, true, false},
            {"embedding_types", &types, 1, static_cast<double>(encodings.size()), false, true,
             false, "", encodings},
            {"output_dimension", &dimensions, 1, max_dimensions, false, true},
            {"truncate", &truncation, 0, 0, false, true},
            {"max_tokens", &longest, 1, max_input_tokens, false, true, false}};
  }
};

// The JSON of the vectors in one encoding.
std::string encoded_all(const std::vector<std::vector<float>>& vectors, VectorEncoding encoding) {
  std::vector<std::string> all;
  all.reserve(vectors.size());
  for (const auto& vector : vectors) all.push_back(encoded(vector, encoding));
  return fmt::format("[{}]", fmt::join(all, ","));
}

std::string encoded_by_type(const std::vector<std::vector<float>>& vectors,
                            std::vector<std::string> types) {
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  std::vector<std::string> all;
  all.reserve(types.size());
  for (const std::string& type : types)
    all.push_back(fmt::format("\"{}\":{}", type,
                              encoded_all(vectors, value_of<VectorEncoding>(type, "encoding"))));
  return fmt::format("{{{}}}", fmt::join(all, ","));
}

// `floats`: whether an answer without embedding_types is an array of vectors.
void answer_embed(Service& service, const HttpRequest& request, const HttpReply& reply,
                  const char* version, bool floats) {
  CohereEmbedRequest asked;
  const std::set<std::string> present = read_request(request.body, asked.fields());
  const ServedModel& served = service.model_named(asked.model);
  const Model& model = *served.model;
  if (asked.longest > 0 && asked.longest < model.maximum_source_length())
    throw RequestError(422,
                       fmt::format("the model cuts a text at {} tokens; leave max_tokens out",
                                   model.maximum_source_length()),
                       "max_tokens", "invalid_value");
  if (!floats && asked.types.empty()) asked.types = {name_of(VectorEncoding::numbers)};
  const std::string prompt = present.contains("input_type")
                                 ? prompt_among(model, prompts_for(asked.input_type))
                                 : model.prompt();
  const VectorForm form{.dimensions = asked.dimensions,
                        .is_cut = asked.truncation == Truncation::end,
                        .field = "texts",
                        .dimensions_field = "output_dimension"};
  ask_vectors(
      {service, served, reply}, asked.texts, prompt,
      [&model, asked, form, version, id = request.id](const std::vector<Embedding>& embeddings) {
        std::vector<std::vector<float>> vectors;
        size_t tokens = 0;
        for (size_t i = 0; i < embeddings.size(); ++i) {
          vectors.push_back(text_vector(model, embeddings[i], i, form));
          tokens += embeddings[i].tokens.size();
        }
        const bool is_plain = asked.types.empty();
        const json meta = {{"api_version", {{"version", version}}},
                           {"billed_units", {{"input_tokens", tokens}}}};
        return HttpResponse{
            .body = fmt::format(
                R"({{"id":{},"response_type":"{}","embeddings":{},"texts":{},"meta":{}}})",
                json_text("embd-" + id), is_plain ? "embeddings_floats" : "embeddings_by_type",
                is_plain ? encoded_all(vectors, VectorEncoding::numbers)
                         : encoded_by_type(vectors, asked.types),
                json_text(asked.texts), json_text(meta))};
      });
}

}  // namespace

void answer_cohere_embed(Service& service, const HttpRequest& request, const HttpReply& reply) {
  answer_embed(service, request, reply, "2", /*floats=*/false);
}

void answer_older_cohere_embed(Service& service, const HttpRequest& request,
                               const HttpReply& reply) {
  answer_embed(service, request, reply, "1", /*floats=*/true);
}

std::vector<RequestField> cohere_embed_fields() { return fields_of<CohereEmbedRequest>(); }

}  // namespace attend
