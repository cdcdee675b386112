#pragma once

#include <string>

#include "attend/explain/subject.h"
#include "attend/explain/trace.h"
#include "attend/explain/vector_groups-inl.h"
#include "attend/models/text_comparison.h"

namespace attend {

// Outputs as sums over groups of the first layer's input vectors.
struct OutputParts {
  at::Tensor parts;  // [groups, ..]
  at::Tensor whole;  // [..]: logits [T, V], or the vector [D] of a text
};

// DecompX (Modarressi et al. 2023). All that a decoder reads of the answer forms one more group,
// after the others; its part is zero without a decoder. Requires an empty no_parts_reason().
OutputParts logit_parts(const Subject& subject, const VectorGroups& groups);

// Returns groups of vectors. Their number keeps logit_parts() to about half a minute and some
// hundred megabytes. Each group is one vector if that is cheap enough.
VectorGroups logit_groups(const Subject& subject, const NetworkTrace& trace,
                          const MethodChoice& choice = {});

// Returns why the subject's logits are not such sums; empty if they are.
std::string no_parts_reason(const Subject& subject, const NetworkTrace& trace);

// The same for the vector of the subject's text. Error if it is not such a sum.
OutputParts text_vector_parts(const Subject& subject, const TextComparison& comparison,
                              const VectorGroups& groups);

// Returns groups of the text's tokens for text_vector_parts(), limited as by logit_groups(). Layers
// have vectors of size `depth`.
VectorGroups text_groups(const Subject& subject, int64_t depth, const MethodChoice& choice = {});

}  // namespace attend
