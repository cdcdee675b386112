#pragma once

#include <ATen/ATen.h>

namespace attend {

// What the queries before gave each key: the state of scores and normalisers that look back. Both
// [B, H, Tk], for queries of three axes [B, Tk], of two [Tk]; undefined before the first query,
// which counts as 0 everywhere.
struct PastWeights {
  at::Tensor previous;  // the weights of the query before
  at::Tensor total;     // the sum over all queries before
};

// The past after one more query, which had these weights. A new value: the old one stays valid for
// others that continue from it, such as the hypotheses of a beam.
PastWeights after(const PastWeights& past, const at::Tensor& weights);

}  // namespace attend
