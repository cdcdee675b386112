#pragma once

#include "attend/ops/recurrence.h"
#include "attend/parallel/communicator.h"
#include "attend/parallel/sharding.h"

namespace attend {

// linear_recurrence() over a sequence that the ranks share. Tensors and spec hold the tokens of
// this rank's runs, in the order of `sharding`; constant decays and the bonus are the same on every
// rank. The result is the output of these tokens, and the state after the whole sequence.
//
// Each rank computes the states of its runs and how they change an earlier state, all ranks
// exchange these once, and a second pass computes the outputs. Memory is linear in the own tokens.
//
// All ranks must call it together, and go backward through it together, with the same tensors
// requiring gradients; `world` must live until then. Gradients of tensors that are the same on
// every rank stay partial per rank. Differentiable once. Error as linear_recurrence(), if the
// sharding does not fit, and with an initial state or offsets.
RecurrenceResult distributed_recurrence(Communicator& world, const at::Tensor& query,
                                        const at::Tensor& key, const at::Tensor& value,
                                        const RecurrenceSpec& spec, const Sharding& sharding);

// The `count` rows before each of this rank's runs, zeros before the first token. x [B, own tokens,
// C] -> one tensor [B, count, C] per run. Calls and gradients as distributed_recurrence().
std::vector<at::Tensor> rows_before_runs(Communicator& world, const at::Tensor& x, int64_t count,
                                         const Sharding& sharding);

}  // namespace attend
