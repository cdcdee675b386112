#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"

namespace attend::internal {

// Fields common to several requests.
struct TeiRequest {
  std::string model, prompt_name;
  bool is_cut = false, is_normalised = true, is_raw = false;
  CutEnd cut_end = CutEnd::right;
  int64_t dimensions = 0, top = 0;

  static std::vector<RequestField> joined(std::vector<std::vector<RequestField>> parts) {
    std::vector<RequestField> all;
    for (auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  std::vector<RequestField> naming() { return {{"model", &model}}; }
  std::vector<RequestField> cutting() {
    return {{"truncate", &is_cut, 0, 0, false, true},
            {"truncation_direction", &cut_end, 0, 0, false, true}};
  }
  std::vector<RequestField> prompting() {
    return {{"prompt_name", &prompt_name, 0, 0, false, true}};
  }
  std::vector<RequestField> scaling() {
    return {{"normalize", &is_normalised, 0, 0, false, true},
            {"dimensions", &dimensions, 1, max_dimensions, false, true}};
  }
  std::vector<RequestField> scoring() { return {{"raw_scores", &is_raw, 0, 0, false, true}}; }
  std::vector<RequestField> ranking() {
    return {{"top_k", &top, 1, max_labels, false, true, false}};
  }
  // Hugging Face's client sends this field, perhaps empty.
  static std::vector<RequestField> parameters(std::vector<RequestField> fields) {
    return {{"parameters", std::move(fields), 0, 0, false, true}};
  }

  void check() const {
    if (is_raw)
      throw RequestError(422, "scores are probabilities; leave raw_scores out", "raw_scores",
                         "invalid_value");
  }
};

// The prompt of that name. RequestError (422) if the model lacks it.
std::string prompt_of(const ServedModel& served, const TeiRequest& asked);

// Answer with the vectors of the inputs, and with the labels of the texts, in the format of
// text-embeddings-inference.
void embed_texts(Service& service, const ServedModel& served, const HttpReply& reply,
                 const RequestInputs& inputs, const TeiRequest& asked);
void predict_labels(Service& service, const ServedModel& served, const HttpReply& reply,
                    const RequestInputs& inputs, const TeiRequest& asked);

}  // namespace attend::internal
