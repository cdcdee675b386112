#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "attend/ops/condition.h"

namespace attend {

class BiasParts;
class BiasTerm;
using BiasTermPointer = std::shared_ptr<const BiasTerm>;

// An axis of a tensor that has one entry per query or per key, or one for all.
struct SequenceAxis {
  const char* name;  // name of the tensor, as in "the dense bias"
  at::Tensor tensor;
  int64_t axis;  // negative: counted from the end
  bool of_keys;
};

// One term of a bias. Each kind of term is a class; functions in biases.h create the terms of the
// library. Terms are immutable.
class BiasTerm : public std::enable_shared_from_this<BiasTerm> {
 public:
  virtual ~BiasTerm() = default;

  // Adds the term to the parts. Error on tensors that do not fit the call.
  virtual void add_to(BiasParts& parts) const = 0;

  // As shifted and shifted_keys in biases.h.
  virtual BiasTermPointer shifted(int64_t offset, int64_t queries) const = 0;
  virtual BiasTermPointer shifted_keys(int64_t first, int64_t keys) const = 0;

  // Returns the term for queries that begin at another position, if it depends on positions.
  virtual BiasTermPointer placed(const QueryOffset&) const { return shared_from_this(); }

  // Floating-point tensors of the term, and the same term with other tensors.
  virtual std::vector<at::Tensor> tensors() const = 0;
  virtual BiasTermPointer with_tensors(const std::vector<at::Tensor>& tensors) const = 0;

  virtual std::vector<SequenceAxis> sequence_axes() const { return {}; }

  // Whether the term of a pair depends on other keys, so that shifted_keys is an Error.
  virtual bool needs_all_keys() const { return false; }
};

}  // namespace attend
