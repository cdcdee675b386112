#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "attend/explain/explanation.h"
#include "attend/models/source_encoder.h"
#include "attend/nn/attention_trace.h"

namespace attend {

// Predicts which tokens touch, such as residues of a folded protein (Rao et al. 2021). The map of
// each head plus its transpose, less row sum times column sum over the total (APC, Dunn et al.
// 2008), is a feature of the regression. `attentions` has the layers of a network with this head
// for one source, in order of computation. Only `count` tokens from `first` on take part, usually
// the text without special tokens. Returns probabilities, symmetric, float64 [count, count] on the
// CPU. Error if the number of heads differs from the regression's.
at::Tensor contact_probabilities(const ContactHead& head,
                                 const std::vector<TracedAttention>& attentions, int64_t first,
                                 int64_t count);

// Contacts of the source's tokens without special_tokens().
struct ContactMap {
  std::vector<std::string> tokens;
  at::Tensor probabilities;  // contact_probabilities()
};

// Error if the model has no contact head.
ContactMap contact_map(const Explanation& explanation);

}  // namespace attend
