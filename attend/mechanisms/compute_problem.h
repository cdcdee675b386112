#pragma once

#include <cstdint>
#include <string>

#include "attend/mechanisms/compute_modules.h"
#include "attend/nn/choice_parameters.h"

namespace attend {

// One attention problem with everything that it reads, as `attend compute` takes it.
struct ComputeProblem {
  at::Tensor query, key, value;
  const Mechanism* mechanism = nullptr;
  AttentionChoices choices;
  Parameters parameters;   // of mechanism and choices, by the names of parameters_of()
  Scope scope;             // what further scopes and the files add to the choice
  at::Tensor key_lengths;  // undefined without
  at::Tensor edges;        // pairs as make_graph takes them; undefined without
  // The positions of the queries among the keys, as in AttentionSpec.
  Align align = Align::first;
  at::Tensor query_offsets;  // undefined without
  double soft_cap = 0;
  int64_t seed = 0;
  at::Tensor context_gradient;  // undefined when not given
  bool only_json = true;        // no input came from an .npy file
};

// Every parameter that a problem's mechanism and choices read.
std::vector<ChoiceParameter> parameters_of(const ComputeProblem& problem);

// Error on choices that do not exist, and on a parameter that is missing or that no choice reads.
Attended attended(const ComputeProblem& problem);

// What one part of the bias adds to the scores of these queries over that scope.
Bias bias_of(const BiasChoice& choice, const ComputeProblem& problem, const at::Tensor& query,
             const Scope& scope);

}  // namespace attend
