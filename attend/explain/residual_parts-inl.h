#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attend/explain/subject.h"
#include "attend/nn/pass.h"

namespace attend {

// Head of self-attention, and the positions of a query and of a key in its sequence, from 0.
struct HeadPlace {
  Site site;
  int64_t head = 0;
  int64_t query = 0, key = 0;
};

// Queries and keys of a head as sums of parts. A part is what one component of the network has
// added to the vectors that the layers read: the tokens, their positions, a head or a feed-forward
// network of an earlier layer. Factors of norms are constant, and biases are a part.
struct ResidualParts {
  std::vector<std::string> names;  // "token", "position", "biases", "encoder.1.head.2", ..
  at::Tensor queries, keys;        // [parts, D], float64 on the CPU
};

// Error if the layer is not self-attention with queries and keys, and if the parts do not add up.
ResidualParts residual_parts(const Subject& subject, const HeadPlace& place);

}  // namespace attend
