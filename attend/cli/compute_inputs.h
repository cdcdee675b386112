#pragma once

#include <string>
#include <vector>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// Inputs of `attend compute`.
struct ComputeFiles {
  std::string query, key, value;  // .npy or .json
  std::string mechanism;          // a row of mechanism_table(); "" for none
  std::string score, normaliser;  // "": the mechanism's, else scaled_dot and softmax
  // As for parse_scope(), or around:D. Scopes intersect. Empty: the mechanism's.
  std::vector<std::string> scopes;
  // As for parse_biases(). Biases are added. Empty: the mechanism's.
  std::vector<std::string> biases;
  std::vector<std::string> parameters;  // NAME=FILE or NAME=NUMBER
  std::string key_lengths, mask;        // "" for none
  std::string query_lengths;            // "" for none
  std::string edges;                    // "" for none
  std::string align = "first";          // as for parse_align()
  std::string query_offsets;            // "" for none
  std::string context_gradient;         // "" for none
  double soft_cap = 0;
  int64_t seed = 0;  // random seed of the normaliser; 0: no draws
};

// Reads the files. All numbers get the dtype of the .npy files, which must agree; float64 without
// such files. Errors name the file or option.
ComputeProblem read_problem(const ComputeFiles& files);

}  // namespace attend
