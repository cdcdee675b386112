#include "attend/nn/shared_sequence.h"

#include <utility>

#include "attend/nn/site.h"

namespace attend {
namespace {

thread_local Communicator* current_world = nullptr;
thread_local const SharedSequence* current_sequence = nullptr;

}  // namespace

SharingScope::SharingScope(Communicator& world) : outer_(std::exchange(current_world, &world)) {}

SharingScope::~SharingScope() { current_world = outer_; }

SharedSequence::SharedSequence(int64_t length, int64_t source_length)
    : world_(current_world),
      length_(length),
      outer_(std::exchange(current_sequence, current_world != nullptr ? this : nullptr)) {
  if (world_ == nullptr) return;
  rank_ = static_cast<size_t>(world_->rank());
  self_.queries = self_.keys = cross_.queries = zigzag_sharding(length, world_->size());
  cross_.keys = zigzag_sharding(source_length, world_->size());
  // Who trains sums the gradients of all parameters, those of the spec among them.
  self_.sums_gradients_of_spec = cross_.sums_gradients_of_spec = false;
}

SharedSequence::~SharedSequence() { current_sequence = outer_; }

const SharedSequence* SharedSequence::current() { return current_sequence; }

at::Tensor SharedSequence::own(const at::Tensor& whole) const {
  return world_ == nullptr ? whole : at_runs(whole, runs(), 1);
}

const SharedSequences& SharedSequence::attended() const {
  return SiteScope::current().reads_source ? cross_ : self_;
}

Runs positions_here(int64_t offset, int64_t count) {
  const SharedSequence* shared = SharedSequence::current();
  return shared != nullptr ? shared->runs() : Runs{{offset, count}};
}

}  // namespace attend
