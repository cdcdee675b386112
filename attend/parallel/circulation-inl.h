#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <utility>
#include <vector>

#include "attend/parallel/communicator.h"

namespace attend {

// Functions that pass one-axis tensors around the ranks, one per rank; `sizes` are their lengths.

// Calls visit(rank, tensor of that rank) for the tensor of each rank. The order is the own tensor,
// `current`, then the preceding ranks. The next tensor is transferred meanwhile.
template <class Visit>
void circulate(Communicator& world, at::Tensor current, const std::vector<int64_t>& sizes,
               Visit visit) {
  const int64_t count = world.size();
  for (int64_t step = 0; step < count; ++step) {
    const int64_t from = (world.rank() - step + count) % count;
    at::Tensor next;
    std::function<void()> wait = [] {};
    if (step + 1 < count) {
      next = current.new_empty({sizes[static_cast<size_t>((from - 1 + count) % count)]});
      wait = world.exchange(current, next);
    }
    visit(from, current);
    wait();
    current = next;
  }
}

// Sums over ranks: each rank has a part for every rank, and every rank receives the sum of its
// parts. Each rank adds its part to the incoming sum and sends it to the next rank.
class RingReduceScatter {
 public:
  RingReduceScatter(Communicator& world, const std::vector<int64_t>& sizes)
      : world_(world), sizes_(sizes) {}

  // Adds this rank's part for another rank. Call first with its own part, then with the parts for
  // preceding ranks, in the order of circulate.
  void add(const at::Tensor& part) {
    ++step_;
    if (step_ == 1) {
      own_ = part;
      return;
    }
    const int64_t count = world_.size();
    sum_ = step_ == 2 ? part : part.add_(arrived());
    const int64_t next = (world_.rank() - step_ + 2 * count) % count;
    incoming_ = part.new_empty({sizes_[static_cast<size_t>(next)]});
    wait_ = world_.exchange(sum_, incoming_);
  }

  at::Tensor own() { return world_.size() == 1 ? own_ : own_.add_(arrived()); }

 private:
  const at::Tensor& arrived() {
    wait_();
    return incoming_;
  }

  Communicator& world_;
  const std::vector<int64_t>& sizes_;
  int64_t step_ = 0;
  at::Tensor own_, sum_, incoming_;
  std::function<void()> wait_;
};

}  // namespace attend
