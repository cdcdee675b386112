#include "attend/nn/step_attention.h"

#include "attend/base/error.h"
#include "attend/nn/choice_parameters.h"

namespace attend {

using at::Tensor;

StepAttention::StepAttention(const AttentionChoices& choices, const AttentionSizes& sizes)
    : LearnedAttention(choices, sizes) {
  if (score_row(choices.score).features != Features::any)
    fail(
        "score {} carries sums of features from query to query and not the keys; take LinearState "
        "of attend/ops/linear_state.h, or scaled_dot",
        choices.score);
  if (reads_source())
    fail(
        "bias {} reads a number per key from a sequence that attends to itself; take "
        "MultiHeadAttention, or alibi",
        choices.bias);
}

AttentionMemory StepAttention::prepare(const Tensor& keys, const Tensor& values,
                                       const Tensor& lengths) const {
  AttentionMemory memory{score().map_key(keys), values, {}};
  // Lengths cost time at every step, and usually all sources of a batch have equal length.
  if (lengths.numel() > 0 && lengths.min().item<int64_t>() < keys.size(1))
    memory.lengths = lengths.to(keys.device());
  return memory;
}

AttentionStep StepAttention::forward(const Tensor& query, const AttentionMemory& memory,
                                     const std::vector<Tensor>& carried, const Pass& pass) const {
  const Tensor one = query.unsqueeze(1);
  Placement placement{.keys = memory.keys.size(1),
                      .key_lengths = memory.lengths,
                      .seed = draws() ? pass.draw_seed() : 0};
  // All rows are at the same step and position.
  if (!carried.empty() && is_positional())
    placement.offset = carried[0].select(0, 0).item<int64_t>();
  if (!carried.empty() && looks_back()) placement.past = {carried.end()[-2], carried.end()[-1]};
  AttentionStep step;
  step.spec = spec(one, placement);
  step.query = one;
  if (!needs_scale(choices())) {
    step.query = step.spec.score.map_query(one);
    step.spec.score = step.spec.score.mapped();
  }
  const auto [context, lse] = pass.attention(step.query, memory.keys, memory.values, step.spec);
  step.context = context.squeeze(1);
  step.lse = lse.squeeze(1);
  if (is_positional())
    step.carried.push_back(at::full({query.size(0)}, placement.offset + 1, at::kLong));
  if (looks_back()) {
    const PastWeights past = after(placement.past, weights(step, memory, pass));
    step.carried.insert(step.carried.end(), {past.previous, past.total});
  }
  return step;
}

Tensor StepAttention::weights(const AttentionStep& step, const AttentionMemory& memory,
                              const Pass& pass) const {
  return pass.weights(step.query, memory.keys, step.lse.unsqueeze(1), step.spec).squeeze(1);
}

Tensor StepAttention::scores(const AttentionStep& step, const AttentionMemory& memory) const {
  return attention_scores(step.query, memory.keys, step.spec).squeeze(1);
}

}  // namespace attend
