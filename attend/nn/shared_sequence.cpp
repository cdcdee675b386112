#include "attend/nn/shared_sequence.h"

namespace attend {

SharedSequence::SharedSequence(const Pass& pass, int64_t length, int64_t source_length)
    : world_(pass.world), length_(length) {
  if (world_ == nullptr) return;
  rank_ = static_cast<size_t>(world_->rank());
  self_.queries = self_.keys = cross_.queries = zigzag_sharding(length, world_->size());
  cross_.keys = zigzag_sharding(source_length, world_->size());
  // Training already sums the gradients of all parameters, including the tensors of the spec.
  self_.sums_gradients_of_spec = cross_.sums_gradients_of_spec = false;
}

at::Tensor SharedSequence::own(const at::Tensor& whole) const {
  return world_ == nullptr ? whole : at_runs(whole, runs(), 1);
}

const SharedSequences& SharedSequence::attended(const Site& site) const {
  return site.reads_source ? cross_ : self_;
}

Runs positions_here(const Pass& pass, int64_t offset, int64_t count) {
  return pass.sequence != nullptr ? pass.sequence->runs() : Runs{{offset, count}};
}

}  // namespace attend
