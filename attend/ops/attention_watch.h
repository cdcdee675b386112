#pragma once

#include <functional>

#include "attend/ops/attention.h"

namespace attend {

// While it lives, answers the calls of attention() on its thread: to keep what a network's layers
// attended to, or to put other weights in their place, also for what reads them by
// attention_weights(). Within `answer` both are themselves again.
// Where there are several, the youngest answers; the one that began last must end first.
class AttentionWatch {
 public:
  using Answer = std::function<AttentionResult(const at::Tensor& query, const at::Tensor& key,
                                               const at::Tensor& value, const AttentionSpec& spec)>;

  // What attention_weights() gives for the queries of a call, all of them, in place of the weights;
  // undefined where they stay.
  using Weights = std::function<at::Tensor(const at::Tensor& query)>;

  explicit AttentionWatch(Answer answer, Weights weights = {});
  ~AttentionWatch();
  AttentionWatch(const AttentionWatch&) = delete;
  AttentionWatch& operator=(const AttentionWatch&) = delete;

  // The youngest watch of this thread; null without one, and within its answer.
  static const AttentionWatch* current();

  AttentionResult answer(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const AttentionSpec& spec) const;
  at::Tensor weights(const at::Tensor& query) const;

 private:
  Answer answer_;
  Weights weights_;
  const AttentionWatch* outer_;
};

}  // namespace attend
