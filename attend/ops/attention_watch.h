#pragma once

#include <functional>

#include "attend/ops/attention.h"

namespace attend {

// While it lives, answers the calls of attention() on its thread: to keep what a network's layers
// attended to, or to put other weights in their place. Within `answer` attention() is itself again.
// Where there are several, the youngest answers; the one that began last must end first.
class AttentionWatch {
 public:
  using Answer = std::function<AttentionResult(const at::Tensor& query, const at::Tensor& key,
                                               const at::Tensor& value, const AttentionSpec& spec)>;

  explicit AttentionWatch(Answer answer);
  ~AttentionWatch();
  AttentionWatch(const AttentionWatch&) = delete;
  AttentionWatch& operator=(const AttentionWatch&) = delete;

  // The youngest watch of this thread; null without one, and within its answer.
  static const AttentionWatch* current();

  AttentionResult answer(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const AttentionSpec& spec) const;

 private:
  Answer answer_;
  const AttentionWatch* outer_;
};

}  // namespace attend
