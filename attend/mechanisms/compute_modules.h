#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/choice_parameters.h"
#include "attend/nn/mechanism_table.h"
#include "attend/ops/attention.h"

namespace attend {

// Inputs and options for attention(), made from the choices and parameters of a problem.
struct Attended {
  at::Tensor query, key, value;  // as arguments of attention()
  AttentionSpec spec;
};

// A module that a mechanism applies in addition to its four choices, with tensors that the command
// line can provide.
struct ComputeModule {
  ModuleKind kind;
  std::string_view formula;  // as shown in the worked example
  std::vector<ChoiceParameter> parameters;
  void (*apply)(const Parameters& parameters, Attended& given);
};

// Returns the module of a mechanism; nullptr if its choices are sufficient or `row` is null. They
// are also sufficient for learned queries (fixed_dot, fixed_mlp) and for a past of the module's own
// (intra, intra_decoder): --query holds the learned queries, --key and --value the past.
const ComputeModule* compute_module(const Mechanism* row);

}  // namespace attend
