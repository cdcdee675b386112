#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/choice_parameters.h"
#include "attend/nn/mechanism_table.h"
#include "attend/ops/attention.h"

namespace attend {

// The result of the choices and parameters of a problem.
struct Attended {
  at::Tensor query, key, value;  // as attention() takes them
  AttentionSpec spec;
};

// What a mechanism does besides its four choices, by tensors that the command line can give.
struct ComputeModule {
  ModuleKind kind;
  std::string_view formula;  // as the worked example writes it
  std::vector<ChoiceParameter> parameters;
  void (*apply)(const Parameters& parameters, Attended& given);
};

// nullptr where the choices say everything, and without a row. They do so, too, with learned
// queries (fixed_dot, fixed_mlp) and a module's own past (intra, intra_decoder): --query holds
// these queries, --key and
// --value that past.
const ComputeModule* compute_module(const Mechanism* row);

}  // namespace attend
