#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attend/base/base64.h"
#include "attend/inference/vector_precision.h"
#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"

namespace attend {
namespace {

// Use of the vectors in Voyage's words, which selects a prompt of the model.
enum class VoyageInputType { query, document };
EnumNames names_of(VoyageInputType) { return {"query", "document"}; }

std::string prompt_for(const Model& model, VoyageInputType type) {
  return prompt_among(model, type == VoyageInputType::query ? query_prompts() : document_prompts());
}

// Voyage's types of the numbers of a vector; each is also a VectorEncoding.
enum class OutputType { numbers, int8, uint8, binary, ubinary };
EnumNames names_of(OutputType) { return {"float", "int8", "uint8", "binary", "ubinary"}; }

struct EmbeddingsRequest {
  std::string model, user;
  RequestInputs input{{InputForm::text, InputForm::texts, InputForm::ids, InputForm::id_rows}};
  VectorEncoding encoding = VectorEncoding::numbers;
  int64_t dimensions = 0;
  VoyageInputType input_type = VoyageInputType::document;
  OutputType output_type = OutputType::numbers;
  bool is_cut = false, is_packed = false;
  const char* dimensions_field = "dimensions";

  std::vector<RequestField> fields() {
    return {{"model", &model},
            {"input", &input, 1, max_vector_inputs, true},
            {"encoding_format", &encoding, 0, 0, false, true},
            // Names of Jina and of LlamaIndex's client of Jina.
            {"embedding_type", &encoding, 0, 0, false, true, false},
            {"encoding_type", &encoding, 0, 0, false, true, false},
            {"dimensions", &dimensions, 1, max_dimensions, false, true},
            {"user", &user, 0, 0, false, true},
            // Voyage's names.
            {"output_dimension", &dimensions, 1, max_dimensions, false, true},
            {"output_dtype", &output_type, 0, 0, false, true, false},
            {"input_type", &input_type, 0, 0, false, true, false},
            {"truncation", &is_cut, 0, 0, false, true}};
  }

  void settle(const std::set<std::string>& present) {
    check_synonyms(present, {"encoding_format", "embedding_type", "encoding_type"});
    check_synonyms(present, {"dimensions", "output_dimension"});
    if (present.contains("output_dimension")) dimensions_field = "output_dimension";
    is_packed = encoding == VectorEncoding::base64;
    if (!present.contains("output_dtype")) return;
    // The encoding then only says whether the numbers are an array or base64.
    if (!is_packed && encoding != VectorEncoding::numbers)
      for (const char* name : {"encoding_format", "embedding_type", "encoding_type"})
        check_synonyms(present, {name, "output_dtype"});
    encoding = value_of<VectorEncoding>(name_of(output_type), "output_dtype");
  }
};

// Float32, little-endian, in base64.
std::string packed_numbers(const std::vector<float>& vector) {
  std::string bytes;
  bytes.reserve(4 * vector.size());
  for (const float number : vector) {
    const auto bits = std::bit_cast<uint32_t>(number);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 255);
  }
  return base64_text(bytes);
}

// The type of quantised_unit(), if the numbers are bytes.
std::optional<VectorPrecision> byte_type(VectorEncoding encoding) {
  switch (encoding) {
    case VectorEncoding::numbers:
    case VectorEncoding::base64:
      break;
    case VectorEncoding::int8:
      return VectorPrecision::int8;
    case VectorEncoding::uint8:
      return VectorPrecision::uint8;
    case VectorEncoding::binary:
      return VectorPrecision::binary;
    case VectorEncoding::ubinary:
      return VectorPrecision::ubinary;
  }
  return std::nullopt;
}

// The numbers of a vector of length 1, one after another, in base64.
std::string packed_as(const std::vector<float>& vector, VectorEncoding encoding) {
  const std::optional<VectorPrecision> type = byte_type(encoding);
  if (!type) return packed_numbers(vector);
  std::string bytes;
  for (const int32_t value : quantised_unit(vector, *type)) bytes += static_cast<char>(value & 255);
  return base64_text(bytes);
}

}  // namespace

std::string prompt_among(const Model& model, const std::vector<std::string>& names) {
  const std::vector<std::string> known = model.prompt_names();
  bool has_any = false;
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) continue;
    has_any = true;
    if (std::string prompt = model.prompt(name); !prompt.empty()) return prompt;
  }
  return has_any ? "" : model.prompt();
}

void check_vector(const Model& model, const Embedding& embedding, size_t index,
                  const VectorForm& form) {
  if (embedding.tokens.empty())
    throw RequestError(422, fmt::format("{}[{}] has no tokens; send a text", form.field, index),
                       form.field, "invalid_value");
  if (embedding.truncated && !form.is_cut) throw too_long(model, form.field, index);
}

std::vector<float> text_vector(const Model& model, const Embedding& embedding, size_t index,
                               const VectorForm& form) {
  check_vector(model, embedding, index, form);
  if (embedding.whole.empty())
    throw RequestError(
        422, fmt::format("{}[{}] has no tokens after its prompt; send a text", form.field, index),
        form.field, "invalid_value");
  if (form.dimensions > std::ssize(embedding.whole))
    throw RequestError(422,
                       fmt::format("{} is {}; vectors of the model have {}", form.dimensions_field,
                                   form.dimensions, embedding.whole.size()),
                       form.dimensions_field, "invalid_value");
  std::vector<float> vector = embedding.whole;
  if (form.dimensions > 0) vector.resize(static_cast<size_t>(form.dimensions));
  double squares = 0;
  for (const float number : vector) squares += static_cast<double>(number) * number;
  const double length = std::sqrt(squares);
  if (form.is_normalised && length > 0)
    for (float& number : vector) number = static_cast<float>(number / length);
  return vector;
}

std::string encoded(const std::vector<float>& vector, VectorEncoding encoding) {
  if (encoding == VectorEncoding::base64) return fmt::format("\"{}\"", packed_numbers(vector));
  const std::optional<VectorPrecision> type = byte_type(encoding);
  return type ? fmt::format("[{}]", fmt::join(quantised_unit(vector, *type), ","))
              : numbers_json(vector);
}

std::string numbers_json(const std::vector<float>& vector) {
  return fmt::format("[{}]", fmt::join(vector, ","));
}

void answer_embeddings(Service& service, const HttpRequest& request, const HttpReply& reply) {
  EmbeddingsRequest asked;
  const std::set<std::string> present = read_request(request.body, asked.fields());
  asked.settle(present);
  const ServedModel& served = service.model_named(asked.model);
  const Model& model = *served.model;
  const VectorForm form{.dimensions = asked.dimensions,
                        .is_cut = asked.is_cut,
                        .dimensions_field = asked.dimensions_field};
  ask_vectors(
      {service, served, reply, "input", detailed_error},
      texts_of(served, asked.input, "input", reply),
      present.contains("input_type") ? prompt_for(model, asked.input_type) : model.prompt(),
      [&served, encoding = asked.encoding, is_packed = asked.is_packed,
       form](const std::vector<Embedding>& embeddings) {
        std::string data;
        size_t tokens = 0;
        for (size_t i = 0; i < embeddings.size(); ++i) {
          const std::vector<float> vector = text_vector(*served.model, embeddings[i], i, form);
          data += fmt::format(
              R"({}{{"object":"embedding","index":{},"embedding":{}}})", i > 0 ? "," : "", i,
              is_packed ? json_text(packed_as(vector, encoding)) : encoded(vector, encoding));
          tokens += embeddings[i].tokens.size();
        }
        return HttpResponse{.body =
                                fmt::format(R"({{"object":"list","data":[{}],"model":{},)"
                                            R"("usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                                            data, json_text(served.name), tokens, tokens)};
      });
}

std::vector<RequestField> embeddings_fields() { return fields_of<EmbeddingsRequest>(); }

}  // namespace attend
