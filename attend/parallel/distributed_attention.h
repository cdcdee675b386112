#pragma once

#include <ATen/ATen.h>

#include "attend/ops/attention.h"
#include "attend/parallel/communicator.h"
#include "attend/parallel/sharding.h"

namespace attend {

// How keys of other ranks reach the queries.
enum class Exchange {
  automatic,  // ring if the choices support it, otherwise gather
  gather,     // every rank gets all keys and values
  ring,       // keys and values are passed around the ranks (Liu et al. 2023)
};

// Positions of a call in sequences that the ranks share.
struct SharedSequences {
  Sharding queries;
  Sharding keys = {};  // keys and values; as the queries if empty
  Exchange exchange = Exchange::automatic;
  // If false, gradients of the spec's tensors stay partial per rank, for callers that sum the
  // gradients of all parameters.
  bool sums_gradients_of_spec = true;
};

// attention() over sequences that exceed the memory of one process. This rank's queries [B, H, own
// Tq, Dq] attend to the keys and values of all ranks; it holds its own, [B, Hkv, own Tk, .]. The
// result for its queries equals attention() over the whole sequences, except for rounding. As
// there, tensors may have two or three axes.
//
// The spec describes the whole sequences and must be equal on every rank. Positions in scopes,
// biases and dropout are positions in the whole sequences. A mask, a bias or centres with a row per
// query have one row for every query of the sequence. Arithmetic and partial results are float32 or
// float64, whatever the dtype of the tensors.
//
// All ranks must call it together, and go backward through it together, with the same tensors
// requiring gradients. `world` must live until then. Each rank gets the gradients of its own
// queries, keys and values. Gradients of the spec's tensors are summed over the ranks and equal on
// each, unless `shared` disables this. Differentiable once.
//
// Tensors must be on the CPU. The ring merges partial results by their lse or by summation, if
// NormaliserRow::merge allows it, and recomputes them in backward. With gather, every rank computes
// all queries for scores and normalisers that look back, and for normalisers that draw keys.
//
// Error as attention(), if the sharding does not fit, or if the exchange is ring but a choice needs
// all keys at once.
AttentionResult distributed_attention(Communicator& world, const at::Tensor& query,
                                      const at::Tensor& key, const at::Tensor& value,
                                      const AttentionSpec& spec, const SharedSequences& shared);

}  // namespace attend
