#pragma once

#include <ATen/ATen.h>

namespace attend {

// Weights of earlier queries per key: the state of scores and normalisers that look back. Both [B,
// H, Tk]; for queries of three axes [B, Tk], of two [Tk]. Undefined before the first query, which
// counts as 0 everywhere.
struct PastWeights {
  at::Tensor previous;  // weights of the previous query
  at::Tensor total;     // sum over all earlier queries
};

// The past after one more query with these weights. Returns a new value; the old one stays valid
// for other continuations, such as the hypotheses of a beam.
PastWeights after(const PastWeights& past, const at::Tensor& weights);

}  // namespace attend
