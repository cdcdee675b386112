#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attend/explain/explanation.h"

namespace attend {

// Score of a head for one query and one key, as a sum. A score is bilinear in the vectors of query
// and key. These vectors are sums of what the components of the network have added, with constant
// factors of norms. So the score is a sum over pairs of components (Elhage et al. 2021).
struct ScoreParts {
  std::string head;        // "encoder.3.head.5"
  std::string query, key;  // tokens
  double score = 0;        // before the normaliser, with the bias of the attention
  double weight = 0;
  // "token", "position", "biases", "encoder.1.head.2", "encoder.1.feed_forward", .. and last, if
  // there is a bias, "attention bias". Components that add nothing here are left out.
  std::vector<std::string> queries = {}, keys = {};
  at::Tensor parts = {};  // [queries, keys], float64 on the CPU
};

// `name` names one edge, such as "encoder.3.head.5.query.7.key.2" (named_heads()). Error on several
// edges or none, on cross-attention, on a key that the query does not read, and on scores that are
// not products of queries and keys.
ScoreParts score_parts(const Explanation& explanation, const std::string& name);

}  // namespace attend
