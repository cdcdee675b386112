#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "attend/ops/attention.h"

namespace attend {

// What `attend compute` reads its problem from.
struct ComputeFiles {
  std::string query, key, value;  // .npy or .json
  std::string score = "scaled_dot";
  std::vector<std::string> parameters;  // NAME=FILE or NAME=NUMBER
  std::vector<std::string> scopes;      // as parse_scope reads them
  std::string key_lengths, mask;        // "" for none
  std::string context_gradient;         // "" for none
};

struct ComputeProblem {
  at::Tensor query, key, value;
  AttentionSpec spec;
  at::Tensor context_gradient;  // undefined when not given
  bool only_json = true;        // no input came from an .npy file
};

// Reads the files. All numbers take the dtype of the .npy files, which must agree; float64 when
// there are none. Error naming the file or option.
ComputeProblem read_problem(const ComputeFiles& files);

// NumPy's name: "float32".
std::string dtype_name(at::ScalarType type);

}  // namespace attend
