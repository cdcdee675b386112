#pragma once

#include <cstdint>
#include <string>

#include "attend/mechanisms/compute_modules.h"
#include "attend/nn/choice_parameters.h"

namespace attend {

// One attention problem with all its inputs, as read by `attend compute`.
struct ComputeProblem {
  at::Tensor query, key, value;
  const Mechanism* mechanism = nullptr;
  AttentionChoices choices;
  Parameters parameters;   // parameters of mechanism and choices, named as in parameters_of()
  Scope scope;             // further scopes, from options and files, that restrict the choice
  at::Tensor key_lengths;  // undefined if not given
  at::Tensor edges;        // pairs for make_graph; undefined if not given
  // Positions of the queries among the keys, as in AttentionSpec.
  Align align = Align::first;
  at::Tensor query_offsets;  // undefined if not given
  double soft_cap = 0;
  int64_t seed = 0;
  at::Tensor context_gradient;  // undefined if not given
  bool only_json = true;        // no input came from an .npy file
};

// All parameters that the mechanism and the choices of a problem read.
std::vector<ChoiceParameter> parameters_of(const ComputeProblem& problem);

// Converts a problem to inputs of attention(). Error on unknown choices, and on a parameter that is
// missing or unused.
Attended attended(const ComputeProblem& problem);

// Bias of one choice for these queries over this scope.
Bias bias_of(const BiasChoice& choice, const ComputeProblem& problem, const at::Tensor& query,
             const Scope& scope);

}  // namespace attend
