#pragma once

#include <ATen/ATen.h>

#include "attend/ops/attention.h"
#include "attend/parallel/communicator.h"
#include "attend/parallel/sharding.h"

namespace attend {

// How queries meet the keys of other ranks.
enum class Exchange {
  automatic,  // ring where the choices allow it, else gather
  gather,     // every rank gets all keys and values
  ring,       // keys and values go round the ranks (Liu et al. 2023)
};

// A call's place in sequences that the ranks share.
struct SharedSequences {
  Sharding queries;
  Sharding keys = {};  // of values too; empty: as the queries
  Exchange exchange = Exchange::automatic;
  // false: gradients of the spec's tensors stay each rank's part, for a caller who sums those of
  // all parameters.
  bool sums_gradients_of_spec = true;
};

// attention() of sequences that are longer than one process holds: this rank's queries [B, H, own
// Tq, Dq] over the keys and values of all ranks, of which it has [B, Hkv, own Tk, .]. The result is
// that of its queries: what one process would compute from the whole sequences, but for rounding.
// Two and three axes as there.
//
// The spec is that of the whole sequences and the same on every rank: positions in scopes, biases
// and dropout count in them, and a mask, a bias or centres with a row per query have one for every
// query of the sequence. Arithmetic and partial results are float32, or float64, whatever dtype is
// stored and sent.
//
// All ranks call it together, and all go backward through it together, with the same tensors
// requiring gradients; `world` must live until then. Gradients of queries, keys and values are
// those of the rank's own; those of the spec's tensors are summed over the ranks, the same on each,
// unless `shared` says otherwise. Differentiable once.
//
// Tensors are on the CPU. The ring merges partial results by their lse or adds them up, which
// NormaliserRow::merge says can be done, and backward computes them again. By gather, scores and
// normalisers that look back, and those that draw keys, have every rank compute all queries.
//
// Error as attention(), on a sharding that does not fit, and where the exchange is ring and a
// choice needs all keys at once.
AttentionResult distributed_attention(Communicator& world, const at::Tensor& query,
                                      const at::Tensor& key, const at::Tensor& value,
                                      const AttentionSpec& spec, const SharedSequences& shared);

}  // namespace attend
