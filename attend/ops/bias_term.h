#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "attend/ops/condition.h"

namespace attend {

class BiasParts;
class BiasTerm;
using BiasTermPointer = std::shared_ptr<const BiasTerm>;

// An axis of a term's tensor that has an entry for each query or each key, or one for all.
struct SequenceAxis {
  const char* name;  // "the dense bias", the tensor's
  at::Tensor tensor;
  int64_t axis;  // counted from the back
  bool of_keys;
};

// What a bias adds to the scores. Each kind of term is one class with its answers; biases.h has
// functions that make those of the library. A term does not change once it is made.
class BiasTerm : public std::enable_shared_from_this<BiasTerm> {
 public:
  virtual ~BiasTerm() = default;

  // Error on tensors that do not fit the call.
  virtual void add_to(BiasParts& parts) const = 0;

  // shifted and shifted_keys of biases.h.
  virtual BiasTermPointer shifted(int64_t offset, int64_t queries) const = 0;
  virtual BiasTermPointer shifted_keys(int64_t first, int64_t keys) const = 0;

  // The term for queries that begin elsewhere, where it counts positions.
  virtual BiasTermPointer placed(const Place&) const { return shared_from_this(); }

  // Its tensors of floating numbers, and the same term with other tensors.
  virtual std::vector<at::Tensor> tensors() const = 0;
  virtual BiasTermPointer with_tensors(const std::vector<at::Tensor>& tensors) const = 0;

  virtual std::vector<SequenceAxis> sequence_axes() const { return {}; }
};

}  // namespace attend
