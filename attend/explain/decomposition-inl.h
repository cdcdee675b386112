#pragma once

#include <string>

#include "attend/explain/subject.h"
#include "attend/explain/trace.h"

namespace attend {

// Logits as sums over groups of the vectors that the first layer reads.
struct LogitParts {
  at::Tensor parts;  // [groups, T, V]
  at::Tensor whole;  // [T, V]
};

// DecompX (Modarressi et al. 2023): vector j is of group j modulo `groups`, all that a decoder
// reads of the answer of the last group. The network is why_no_parts() takes.
LogitParts logit_parts(const Subject& subject, int64_t groups);

// The number of groups where each vector is one of its own.
int64_t logit_groups(const NetworkTrace& trace);

// Why the subject's logits are no such sums, as far as the network tells; empty where they are.
std::string why_no_parts(const Subject& subject, const NetworkTrace& trace);

}  // namespace attend
