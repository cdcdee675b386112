#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/inference/model.h"
#include "attend/serve/request_fields.h"

namespace attend {

class Service;

// POST /v1/embeddings as OpenAI's clients ask and read it: for each input the mean of the vectors
// that the model has of its tokens, scaled to length 1. An input without tokens and one that is
// longer than the model reads are refused.
void answer_embeddings(Service& service, const HttpRequest& request, const HttpReply& reply);
std::vector<RequestField> embeddings_fields();

// How the vectors of texts are told.
struct VectorForm {
  int64_t dimensions = 0;       // the first so many numbers; 0: all
  bool is_normalised = true;    // scaled to length 1
  bool is_cut = false;          // a longer text is cut as the model does; otherwise refused
  const char* field = "input";  // of the request, for errors
};

// Throws RequestError on text `index` if it has no vector (422) or is too long (400).
void check_vector(const Model& model, const Embedding& embedding, size_t index,
                  const VectorForm& form);

// The vector of text `index`. Error as check_vector(), and (422) on fewer dimensions.
std::vector<float> text_vector(const Model& model, const Embedding& embedding, size_t index,
                               const VectorForm& form);

// A vector as JSON, each number as short as it can be for its float32.
std::string numbers_json(const std::vector<float>& vector);

}  // namespace attend
