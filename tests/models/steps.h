#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "attend/data/vocabulary.h"
#include "attend/models/pair_network.h"

namespace attend::reference {

// The steps of a network in float64 along the targets of a batch, against its teacher-forced logits
// [B, T, V]. `look`, if any, sees each result, with weights.
inline void expect_steps(PairNetwork& network, const Batch& batch, const at::Tensor& logits,
                         const std::function<void(const StepResult&)>& look = {}) {
  const at::NoGradGuard no_gradient;
  const at::Tensor whole = logits.log_softmax(-1);
  StepState state = network.start(batch.source, batch.source_lengths);
  at::Tensor before = at::full({batch.target.size(0)}, Vocabulary::bos, at::kLong);
  for (int64_t t = 0; t < batch.target.size(1); ++t) {
    const StepResult result = network.step(before, state, static_cast<bool>(look));
    EXPECT_TRUE(at::allclose(result.log_probabilities, whole.select(1, t), 1e-9, 1e-9)) << t;
    if (look) look(result);
    before = batch.target.select(1, t);
  }
}

// What is carried from step to step after it is reordered as a beam search does: some rows change
// places, some are there twice. For batches of two pairs or more and tokens up to 9.
inline void expect_reordering(PairNetwork& network, const Batch& batch) {
  const at::NoGradGuard no_gradient;
  network.eval();
  const int64_t count = batch.source.size(0);
  const at::Tensor rows = at::tensor({int64_t{1}, int64_t{0}, count - 1, int64_t{1}}, at::kLong);
  const at::Tensor row = at::arange(count, at::kLong);
  const auto after_two = [&] {
    StepState state = network.start(batch.source, batch.source_lengths);
    network.step(at::full_like(row, Vocabulary::bos), state, false);
    network.step(row + 4, state, false);
    return state;
  };
  StepState kept = after_two(), moved = after_two();
  moved.reorder(rows, /*same_sources=*/false);
  const at::Tensor tokens = row + 7;
  const at::Tensor expected = network.step(tokens, kept, false).log_probabilities;
  const at::Tensor found =
      network.step(tokens.index_select(0, rows), moved, false).log_probabilities;
  EXPECT_TRUE(at::allclose(found, expected.index_select(0, rows), 1e-9, 1e-9));
}

}  // namespace attend::reference
