#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "attend/base/base64.h"
#include "attend/inference/vector_precision.h"
#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"

namespace attend {
namespace {

struct EmbeddingsRequest {
  std::string model, user;
  RequestInputs input{{InputForm::text, InputForm::texts, InputForm::ids, InputForm::id_rows}};
  VectorEncoding encoding = VectorEncoding::numbers;
  int64_t dimensions = 0;

  std::vector<RequestField> fields() {
    return {{"model", &model},
            {"input", &input, 1, max_vector_inputs, true},
            {"encoding_format", &encoding, 0, 0, false, true},
            // Names of Jina and of LlamaIndex's client of Jina.
            {"embedding_type", &encoding, 0, 0, false, true, false},
            {"encoding_type", &encoding, 0, 0, false, true, false},
            {"dimensions", &dimensions, 1, max_dimensions, false, true},
            {"user", &user, 0, 0, false, true}};
  }

  static void check(const std::set<std::string>& present) {
    std::string chosen;
    for (const char* name : {"encoding_format", "embedding_type", "encoding_type"}) {
      if (!present.contains(name)) continue;
      if (!chosen.empty())
        throw RequestError(422,
                           fmt::format("{} and {} mean the same; send one of them", chosen, name),
                           name, "invalid_value");
      chosen = name;
    }
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

}  // namespace

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
  const auto bytes = [&](VectorPrecision precision) {
    return fmt::format("[{}]", fmt::join(quantised_unit(vector, precision), ","));
  };
  switch (encoding) {
    case VectorEncoding::numbers:
      break;
    case VectorEncoding::base64:
      return fmt::format("\"{}\"", packed_numbers(vector));
    case VectorEncoding::int8:
      return bytes(VectorPrecision::int8);
    case VectorEncoding::uint8:
      return bytes(VectorPrecision::uint8);
    case VectorEncoding::binary:
      return bytes(VectorPrecision::binary);
    case VectorEncoding::ubinary:
      return bytes(VectorPrecision::ubinary);
  }
  return numbers_json(vector);
}

std::string numbers_json(const std::vector<float>& vector) {
  return fmt::format("[{}]", fmt::join(vector, ","));
}

void answer_embeddings(Service& service, const HttpRequest& request, const HttpReply& reply) {
  EmbeddingsRequest asked;
  EmbeddingsRequest::check(read_request(request.body, asked.fields()));
  const ServedModel& served = service.model_named(asked.model);
  ask_vectors({service, served, reply, "input"}, texts_of(served, asked.input, "input", reply),
              served.model->prompt(),
              [&served, encoding = asked.encoding,
               form = VectorForm{asked.dimensions}](const std::vector<Embedding>& embeddings) {
                std::string data;
                size_t tokens = 0;
                for (size_t i = 0; i < embeddings.size(); ++i) {
                  const std::vector<float> vector =
                      text_vector(*served.model, embeddings[i], i, form);
                  data += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":{}}})",
                                      i > 0 ? "," : "", i, encoded(vector, encoding));
                  tokens += embeddings[i].tokens.size();
                }
                return HttpResponse{
                    .body = fmt::format(R"({{"object":"list","data":[{}],"model":{},)"
                                        R"("usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                                        data, json_text(served.name), tokens, tokens)};
              });
}

std::vector<RequestField> embeddings_fields() { return fields_of<EmbeddingsRequest>(); }

}  // namespace attend
