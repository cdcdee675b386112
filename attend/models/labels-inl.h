#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>

#include "attend/data/batches.h"
#include "attend/models/target_shape.h"
#include "attend/text/vocabulary.h"

namespace attend::internal {

// Labels are the target tokens after the fixed tokens.
constexpr int64_t first_label = Vocabulary::unknown + 1;

constexpr double impossible = -std::numeric_limits<double>::infinity();

// [.., labels] -> [.., target tokens]; the fixed tokens are impossible.
inline at::Tensor with_fixed_tokens(const at::Tensor& log_probabilities) {
  return at::constant_pad_nd(log_probabilities, {first_label, 0}, impossible);
}

// Scores [.., labels] -> log probabilities [.., target tokens] of dtype `type`; default: dtype of
// the scores.
inline at::Tensor label_log_probabilities(const at::Tensor& scores,
                                          c10::optional<at::ScalarType> type = {}) {
  return with_fixed_tokens(scores.log_softmax(-1, type));
}

// Values of a step: log probabilities as above, or the number. Log probabilities of a set are
// independent of each other.
inline at::Tensor step_values(const at::Tensor& scores, const TargetShape& target,
                              c10::optional<at::ScalarType> type = {}) {
  if (!target.is_number() && !target.is_label_set) return label_log_probabilities(scores, type);
  const at::Tensor typed = scores.to(type.value_or(scores.scalar_type()));
  return target.is_number() ? typed : with_fixed_tokens(at::log_sigmoid(typed));
}

// [B, labels]: 1 for the labels of each pair, else 0.
inline at::Tensor wanted_labels(const at::Tensor& scores, const Batch& batch) {
  return at::zeros({scores.size(0), first_label + scores.size(1)}, scores.options())
      .scatter(1, batch.labels.to(scores.device()), 1)
      .slice(1, first_label);
}

// PairNetwork::log_probabilities for the scores [B, labels] of sets. The end of a pair
// with labels gets the probability of the whole set. Otherwise each target is a label, and the end
// means that the label is not in the set.
inline at::Tensor label_set_log_probabilities(const at::Tensor& scores, const Batch& batch) {
  using at::Tensor;
  const Tensor typed = scores.to(at::kDouble), target = batch.target.to(scores.device());
  const Tensor none = at::full({target.size(0), target.size(1), first_label + scores.size(1)},
                               impossible, typed.options());
  const Tensor end = at::full_like(target, Vocabulary::eos).unsqueeze(2);
  if (batch.labels.defined()) {
    const Tensor losses = at::binary_cross_entropy_with_logits(typed, wanted_labels(typed, batch),
                                                               {}, {}, at::Reduction::None);
    return none.scatter(2, end, -losses.sum(1).view({-1, 1, 1}));
  }
  const Tensor own = typed.gather(1, target - first_label).unsqueeze(2);
  return none.scatter(2, target.unsqueeze(2), at::log_sigmoid(own))
      .scatter(2, end, at::log_sigmoid(-own));
}

// PairNetwork::log_probabilities for the scores [B, labels], or [B, 1] of numbers.
inline at::Tensor target_log_probabilities(const at::Tensor& scores, const Batch& batch,
                                           const TargetShape& target) {
  return target.is_label_set ? label_set_log_probabilities(scores, batch)
                             : step_values(scores, target, at::kDouble).unsqueeze(1);
}

// PairNetwork::objective for the scores [B, labels], or [B, 1] of numbers.
inline at::Tensor label_objective(const at::Tensor& scores, const Batch& batch,
                                  const TargetShape& target, double smoothing) {
  if (target.is_probability)
    return at::binary_cross_entropy_with_logits(
        scores.squeeze(1), batch.numbers.to(scores.device()), {}, {}, at::Reduction::Sum);
  if (target.is_number())
    return at::mse_loss(scores.squeeze(1), batch.numbers.to(scores.device()), at::Reduction::Sum);
  if (target.is_label_set)
    return at::binary_cross_entropy_with_logits(scores, wanted_labels(scores, batch), {}, {},
                                                at::Reduction::Sum);
  const at::Tensor labels = batch.target.to(scores.device()).select(1, 0) - first_label;
  return at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum, /*ignore_index=*/-100,
                                smoothing);
}

}  // namespace attend::internal
