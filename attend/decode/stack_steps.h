#pragma once

#include <memory>

#include "attend/decode/decoding_state.h"
#include "attend/nn/token_loss.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

// State of N hypotheses in Transformer layers and the output layer: the decoder after its
// embedding.
class StackSteps {
 public:
  virtual ~StackSteps() = default;

  // Number of positions read so far, also the index of the next one.
  virtual int64_t positions() const = 0;

  // Reads the next positions x [N, T, depth] of each hypothesis.
  virtual void read(const at::Tensor& x, const Pass& pass) = 0;

  // Both read the next position x [N, depth]; next() may be faster. Weights are over the source, or
  // over all positions read if there is none; they are the mean of the heads of the last layer, and
  // undefined if that layer reads by a recurrence.
  virtual StepResult step(const at::Tensor& x, bool with_weights, const Pass& pass) = 0;
  virtual NextTokens next(const at::Tensor& x, const NextQuery& query);

  virtual void reorder(const at::Tensor& rows, bool same_sources) = 0;  // as in DecodingState
  virtual bool appends() const { return false; }                        // as in DecodingState
  virtual void append(StackSteps& other);                               // as in DecodingState
};

// Steps that use LibTorch operations. The stack must outlive them.
std::unique_ptr<StackSteps> stack_steps(TransformerStack& stack, const TokenOutput& output,
                                        const StackSource& source, const Pass& pass);

}  // namespace attend
