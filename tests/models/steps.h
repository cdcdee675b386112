#pragma once

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <functional>

#include "attend/models/pair_network.h"
#include "attend/nn/attention_trace.h"
#include "attend/text/vocabulary.h"

namespace attend::reference {

// Compares the steps of a float64 network along the targets of a batch with its teacher-forced
// logits [B, T, V]. `look`, if given, is called with each result, including weights.
inline void expect_steps(PairNetwork& network, const Batch& batch, const at::Tensor& logits,
                         const std::function<void(const StepResult&)>& look = {}) {
  const at::NoGradGuard no_gradient;
  const at::Tensor whole = logits.log_softmax(-1);
  const auto state = network.start(batch.source, batch.source_lengths, {});
  at::Tensor before = at::full({batch.target.size(0)}, Vocabulary::bos, at::kLong);
  for (int64_t t = 0; t < batch.target.size(1); ++t) {
    const StepResult result = state->step(before, static_cast<bool>(look), {});
    EXPECT_TRUE(at::allclose(result.log_probabilities, whole.select(1, t), 1e-9, 1e-9)) << t;
    if (look) look(result);
    before = batch.target.select(1, t);
  }
}

// Returns whether a network with attention calls attention() in a step; packed steps do not.
inline bool steps_by_attention(DecodingState& state, const at::Tensor& tokens) {
  AttentionTrace trace;
  state.step(tokens, /*with_weights=*/false, Pass{}.watched_by(trace));
  return !trace.attentions().empty();
}

// The same numbers with stride 2.
inline at::Tensor as_column(const at::Tensor& x) {
  return at::stack({x, at::full_like(x, -1)}, 1).select(1, 0);
}

// Compares packed float32 steps with LibTorch's steps in log probabilities and weights, along rows
// that a beam reorders. Also compares the result of next() with these. For batches of two or more
// pairs and tokens from 4 on.
inline void expect_packed_steps(PairNetwork& network, const Batch& batch, int64_t steps,
                                bool has_packed_form) {
  const at::NoGradGuard no_gradient;
  network.eval();
  network.to(at::kFloat);
  const auto start = [&] { return network.start(batch.source, batch.source_lengths, {}); };
  const auto plain = start();
  ASSERT_EQ(network.pack(WeightType::float32), has_packed_form);
  if (!has_packed_form) return;
  const auto packed = start(), asked = start();
  at::Tensor before = at::full({batch.source.size(0)}, Vocabulary::bos, at::kLong);
  EXPECT_FALSE(steps_by_attention(*start(), before));
  for (int64_t t = 0; t < steps; ++t) {
    const StepResult want = plain->step(before, true, {});
    const StepResult got = packed->step(before, true, {});
    // Logits of some units are sums of some tens of float32 terms.
    EXPECT_TRUE(at::allclose(got.log_probabilities, want.log_probabilities, 1e-5, 1e-5)) << t;
    // A last layer with a recurrence has no weights.
    ASSERT_EQ(got.weights.defined(), want.weights.defined());
    if (want.weights.defined()) {
      ASSERT_EQ(got.weights.sizes(), want.weights.sizes());
      EXPECT_TRUE(at::allclose(got.weights, want.weights, 1e-5, 1e-6)) << t;
    }
    NextQuery query{.count = 3, .excluded = {0, 1, 5}, .with_weights = true};
    query.given.assign(static_cast<size_t>(before.size(0)), -1);
    query.given[0] = 4;
    const NextTokens found = asked->next(before, query);
    const NextTokens expected = next_of(got, query);
    EXPECT_TRUE(at::equal(found.tokens.select(1, 0), expected.tokens.select(1, 0))) << t;
    EXPECT_TRUE(at::equal(found.log_probabilities, expected.log_probabilities)) << t;
    ASSERT_EQ(found.weights.defined(), got.weights.defined());
    if (got.weights.defined()) EXPECT_TRUE(at::equal(found.weights, got.weights)) << t;
    // Hypotheses change places within their sources, or some end and others continue twice.
    const int64_t rows = before.size(0);
    const bool same_sources = t % 2 == 1;
    const at::Tensor kept = same_sources ? at::arange(rows, at::kLong)
                                         : at::tensor({rows - 1, int64_t{0}, rows - 1}, at::kLong);
    for (const auto* state : {&plain, &packed, &asked})
      (*state)->reorder(as_column(kept), same_sources);
    before = as_column(at::arange(kept.size(0), at::kLong) + 4);
  }
}

// Starts these pairs of a batch, without unnecessary padding.
inline std::unique_ptr<DecodingState> start_of(PairNetwork& network, const Batch& batch,
                                               const std::vector<int64_t>& numbers) {
  const at::Tensor rows = at::tensor(at::ArrayRef<int64_t>(numbers), at::kLong);
  const at::Tensor lengths = batch.source_lengths.index_select(0, rows);
  const int64_t longest = lengths.max().item<int64_t>();
  return network.start(batch.source.index_select(0, rows).narrow(1, 0, longest), lengths, {});
}

// Packed states to which others are appended between steps are bit-identical to separate states.
// Rows are appended within and after the first 16 positions. For batches of three pairs and tokens
// from 4 to 8.
inline void expect_appended_steps(PairNetwork& network, const Batch& batch) {
  const at::NoGradGuard no_gradient;
  network.eval();
  network.to(at::kFloat);
  ASSERT_TRUE(network.pack(WeightType::float32));
  struct Row {
    int64_t pair;
    std::unique_ptr<DecodingState> alone;
    int64_t before;
  };
  std::vector<Row> rows;
  const auto started = [&](const std::vector<int64_t>& pairs) {
    for (const int64_t pair : pairs)
      rows.push_back({pair, start_of(network, batch, {pair}), Vocabulary::bos});
    if (network.pads_exactly()) return start_of(network, batch, pairs);
    auto joined = start_of(network, batch, {pairs[0]});
    for (size_t i = 1; i < pairs.size(); ++i) joined->append(*start_of(network, batch, {pairs[i]}));
    return joined;
  };
  const auto all = started({0, 2});
  ASSERT_TRUE(all->appends());
  for (int64_t t = 0; t < 24; ++t) {
    if (t == 1) all->append(*started({1, 0}));
    if (t == 9 || t == 20) all->append(*started({2, 1}));
    // The first row ends.
    if (t == 12) {
      rows.erase(rows.begin());
      all->reorder(at::arange(1, std::ssize(rows) + 1, at::kLong), /*same_sources=*/false);
    }
    std::vector<int64_t> before;
    for (const Row& row : rows) before.push_back(row.before);
    const at::Tensor found =
        all->step(at::tensor(at::ArrayRef<int64_t>(before), at::kLong), false, {})
            .log_probabilities;
    for (size_t r = 0; r < rows.size(); ++r) {
      const at::Tensor alone = rows[r]
                                   .alone->step(at::full({1}, rows[r].before, at::kLong), false, {})
                                   .log_probabilities;
      EXPECT_TRUE(at::equal(found[static_cast<int64_t>(r)], alone[0])) << t << " " << r;
      rows[r].before = 4 + (t + static_cast<int64_t>(r)) % 5;
    }
  }
}

// Checks the state after a reordering as in beam search: some rows change places, some are
// duplicated. For batches of two or more pairs and tokens up to 9.
inline void expect_reordering(PairNetwork& network, const Batch& batch) {
  const at::NoGradGuard no_gradient;
  network.eval();
  const int64_t count = batch.source.size(0);
  const at::Tensor rows = at::tensor({int64_t{1}, int64_t{0}, count - 1, int64_t{1}}, at::kLong);
  const at::Tensor row = at::arange(count, at::kLong);
  const auto after_two = [&] {
    auto state = network.start(batch.source, batch.source_lengths, {});
    state->step(at::full_like(row, Vocabulary::bos), false, {});
    state->step(row + 4, false, {});
    return state;
  };
  const auto kept = after_two(), moved = after_two();
  moved->reorder(rows, /*same_sources=*/false);
  const at::Tensor tokens = row + 7;
  const at::Tensor expected = kept->step(tokens, false, {}).log_probabilities;
  const at::Tensor found = moved->step(tokens.index_select(0, rows), false, {}).log_probabilities;
  EXPECT_TRUE(at::allclose(found, expected.index_select(0, rows), 1e-9, 1e-9));
}

}  // namespace attend::reference
