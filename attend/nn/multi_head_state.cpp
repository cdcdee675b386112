#include "attend/nn/multi_head_state.h"

#include <ATen/core/grad_mode.h>

namespace attend {

using at::Tensor;

Tensor selected_rows(const Tensor& x, const Tensor& rows) {
  return x.defined() ? x.index_select(0, rows.to(x.device())) : x;
}

namespace {

// Selects rows of the first `keys` keys, and keeps the spare room.
Tensor selected_keys(const Tensor& held, const Tensor& rows, int64_t keys) {
  if (!held.defined()) return held;
  if (at::GradMode::is_enabled() && held.requires_grad())
    return selected_rows(held.narrow(2, 0, keys), rows);
  std::vector<int64_t> shape = held.sizes().vec();
  shape[0] = rows.size(0);
  Tensor moved = held.new_empty(shape);
  moved.narrow(2, 0, keys).copy_(selected_rows(held.narrow(2, 0, keys), rows));
  return moved;
}

}  // namespace

void MultiHeadState::reorder(const Tensor& rows, bool same_keys) {
  for (Group& group : groups_) {
    group.past = {selected_rows(group.past.previous, rows), selected_rows(group.past.total, rows)};
    for (Tensor* each : {&group.selected, &group.queries, &group.sums.values, &group.sums.total})
      *each = selected_rows(*each, rows);
    if (same_keys) continue;
    for (Tensor* each : {&group.keys, &group.values, &group.plain_keys})
      *each = selected_keys(*each, rows, keys_ - group.first);
    group.index_keys = selected_keys(group.index_keys, rows, keys_);
    group.key_gates = selected_keys(group.key_gates, rows, keys_);
  }
  if (!same_keys) key_lengths_ = selected_rows(key_lengths_, rows);
}

}  // namespace attend
