#pragma once

#include "attend/ops/attention.h"
#include "attend/ops/lowered_spec.h"

namespace attend {

struct Lowered {
  Parts parts;
  c10::intrusive_ptr<LoweredSpec> spec;
  // For queries that run in order: what their pasts are mapped with, and the first one.
  Parameters parameters = {};
  PastWeights past = {};  // [B, H, Tk], in the dtype of the arithmetic
};

// Checks the tensors and brings them there. An undefined value is one of depth 0. Keys that later
// queries read too stay apart from the queries. What is computed of them afterwards takes place
// WithoutAutocast.
Lowered lower(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
              const AttentionSpec& spec, bool for_later_queries = false);

// Gives the parts and the form of one query its past.
void add_past(const Parameters& parameters, const PastWeights& past, Parts& parts,
              LoweredSpec& spec);

// What the scores of such a spec have been divided by.
double folded_temperature(const LoweredSpec& spec);

}  // namespace attend
