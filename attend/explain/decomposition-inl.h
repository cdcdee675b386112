#pragma once

#include <string>

#include "attend/explain/subject.h"
#include "attend/explain/trace.h"
#include "attend/explain/vector_groups-inl.h"

namespace attend {

// Logits as sums over groups of the vectors that the first layer reads.
struct LogitParts {
  at::Tensor parts;  // [groups, T, V]
  at::Tensor whole;  // [T, V]
};

// DecompX (Modarressi et al. 2023). All that a decoder reads of the answer is a group of its own,
// behind the others; its part is zero where there is no decoder. The network is one that
// why_no_parts() takes.
LogitParts logit_parts(const Subject& subject, const VectorGroups& groups);

// The groups whose parts take half a minute and some hundred megabytes; of one vector each where
// these are enough.
VectorGroups logit_groups(const Subject& subject, const NetworkTrace& trace,
                          const MethodChoice& choice = {});

// Why the subject's logits are no such sums, as far as the network tells; empty where they are.
std::string why_no_parts(const Subject& subject, const NetworkTrace& trace);

}  // namespace attend
