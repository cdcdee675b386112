#pragma once

#include <string_view>
#include <vector>

#include "attend/nn/choice_parameters.h"
#include "attend/ops/attention.h"

namespace attend {

// What the choices and parameters of a problem come to.
struct Attended {
  at::Tensor query, key, value;  // as attention() takes them
  AttentionSpec spec;
};

// What a mechanism does besides its four choices, by tensors that the command line can give.
struct ComputeModule {
  std::string_view mechanism;
  std::string_view formula;  // as the worked example writes it
  std::vector<ChoiceParameter> parameters;
  void (*apply)(const Parameters& parameters, Attended& given);
};

// nullptr where the choices say all. Those of learned queries (fixed_dot, fixed_mlp) and of a
// module's own past (intra, intra_decoder) say all too: --query holds these queries, --key and
// --value that past.
const ComputeModule* compute_module(std::string_view mechanism);

}  // namespace attend
