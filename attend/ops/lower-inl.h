#pragma once

#include "attend/ops/attention.h"
#include "attend/ops/lowered_spec.h"

namespace attend {

struct Lowered {
  Parts parts;
  c10::intrusive_ptr<LoweredSpec> spec;
  // For queries that run in order: parameters that map their past, and the past of the first query.
  Parameters parameters = {};
  PastWeights past = {};  // [B, H, Tk], in the dtype of the arithmetic
};

// Checks the tensors and converts the call to the form of the kernels. An undefined value counts as
// one of depth 0. for_later_queries: keys are scaled independently of the queries, since later
// queries read them again. Later computations on the result require WithoutAutocast.
Lowered lower(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
              const AttentionSpec& spec, bool for_later_queries = false);

// Adds the past of one query to its parts and spec.
void add_past(const Parameters& parameters, const PastWeights& past, Parts& parts,
              LoweredSpec& spec);

// Temperature by which the scores of this spec have been divided; 1 if none.
double folded_temperature(const LoweredSpec& spec);

}  // namespace attend
