#include "attend/nn/step_model.h"

namespace attend {

void StepState::reorder(const at::Tensor& rows, bool same_sources) {
  const auto selected = [&](const at::Tensor& tensor) {
    return tensor.index_select(0, rows.to(tensor.device()));
  };
  for (at::Tensor& tensor : recurrent) tensor = selected(tensor);
  for (MultiHeadState& each : self_cache) each.reorder(rows, /*same_keys=*/false);
  for (MultiHeadState& each : cross_cache) each.reorder(rows, same_sources);
  for (StepState& each : members) each.reorder(rows, same_sources);
  if (same_sources) return;
  for (at::Tensor& tensor : constant) tensor = selected(tensor);
}

}  // namespace attend
