#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/inference/model.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/embeddings in OpenAI's format: for each input the mean of its token vectors, scaled to
// length 1. Inputs without tokens and inputs longer than the model reads are refused.
void answer_embeddings(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> embeddings_fields();

// Form of the vectors of texts.
struct VectorForm {
  int64_t dimensions = 0;       // keep only the first `dimensions` numbers; 0: all
  bool is_normalised = true;    // scale to length 1
  bool is_cut = false;          // truncate longer texts; otherwise refuse them
  const char* field = "input";  // field of the request, for errors
};

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
