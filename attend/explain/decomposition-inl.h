#pragma once

#include <string>

#include "attend/explain/subject.h"
#include "attend/explain/trace.h"
#include "attend/explain/vector_groups-inl.h"

namespace attend {

// Logits as sums over groups of the first layer's input vectors.
struct LogitParts {
  at::Tensor parts;  // [groups, T, V]
  at::Tensor whole;  // [T, V]
};

// DecompX (Modarressi et al. 2023). All that a decoder reads of the answer forms one more group,
// after the others; its part is zero without a decoder. Requires an empty no_parts_reason().
LogitParts logit_parts(const Subject& subject, const VectorGroups& groups);

// Returns groups of vectors. Their number keeps logit_parts() to about half a minute and some
// hundred megabytes. Each group is one vector if that is cheap enough.
VectorGroups logit_groups(const Subject& subject, const NetworkTrace& trace,
                          const MethodChoice& choice = {});

// Returns why the subject's logits are not such sums; empty if they are.
std::string no_parts_reason(const Subject& subject, const NetworkTrace& trace);

}  // namespace attend
