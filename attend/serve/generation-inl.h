#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "attend/decode/search_options.h"
#include "attend/inference/model.h"
#include "attend/serve/request_fields.h"

namespace attend::internal {

// Options of answers as generate() of transformers and text-generation-inference name them.
struct GenerationFields {
  int64_t longest_new = 0, longest = 0, shortest_new = 0, shortest = 0, beam = 1, seed = 1;
  double length_penalty = 1;
  bool draws = false;
  Sampling sampling = {};

  std::vector<RequestField> fields();

  // The options of a search with the given fields, and the model's own for the others. RequestError
  // (422) if fields contradict each other.
  SearchOptions options(const Model& model, const std::set<std::string>& given) const;

 private:
  void set_lengths(const Model& model, const std::set<std::string>& given,
                   SearchOptions& options) const;
  void set_sampling(const std::set<std::string>& given, SearchOptions& options) const;
};

}  // namespace attend::internal
