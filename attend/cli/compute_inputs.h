#pragma once

#include <string>
#include <vector>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// What `attend compute` reads its problem from.
struct ComputeFiles {
  std::string query, key, value;        // .npy or .json
  std::string mechanism;                // a row of mechanism_table(); "" for none
  std::string score, normaliser;        // "": the mechanism's, else scaled_dot and softmax
  std::vector<std::string> scopes;      // as parse_scope reads them, or around:D; they
                                        // intersect; none: the mechanism's
  std::vector<std::string> biases;      // as parse_biases reads them; they add
                                        // up; none: the mechanism's
  std::vector<std::string> parameters;  // NAME=FILE or NAME=NUMBER
  std::string key_lengths, mask;        // "" for none
  std::string query_lengths;            // "" for none
  std::string edges;                    // "" for none
  std::string align = "first";          // as parse_align reads it
  std::string query_offsets;            // "" for none
  std::string context_gradient;         // "" for none
  double soft_cap = 0;
  int64_t seed = 0;  // of what the normaliser draws; 0: nothing is drawn
};

// Reads the files. All numbers take the dtype of the .npy files, which must agree; float64 when
// there are none. Error naming the file or option.
ComputeProblem read_problem(const ComputeFiles& files);

// NumPy's name: "float32".
std::string dtype_name(at::ScalarType type);

}  // namespace attend
