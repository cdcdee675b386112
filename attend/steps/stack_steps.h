#pragma once

#include <memory>

#include "attend/nn/token_loss.h"
#include "attend/nn/transformer_stack.h"
#include "attend/steps/decoding_state.h"

namespace attend {

// The state of N hypotheses in Transformer layers and the map from their vectors to tokens: what
// lies behind the embedding of a network that decodes.
class StackSteps {
 public:
  virtual ~StackSteps() = default;

  // How many positions were read: the number of the next.
  virtual int64_t positions() const = 0;

  // Reads the next positions x [N, T, depth] of each hypothesis.
  virtual void read(const at::Tensor& x, const Pass& pass) = 0;

  // Both read the next position x [N, depth]; next() may be faster. Weights: over the source, or
  // without one over all that was read; the mean of the heads of the last layer.
  virtual StepResult step(const at::Tensor& x, bool with_weights, const Pass& pass) = 0;
  virtual NextTokens next(const at::Tensor& x, const NextQuery& query);

  virtual void reorder(const at::Tensor& rows, bool same_sources) = 0;  // as DecodingState
  virtual bool appends() const { return false; }                        // the same
  virtual void append(StackSteps& other);                               // the same
};

// Steps of LibTorch. The stack must outlive them.
std::unique_ptr<StackSteps> stack_steps(TransformerStack& stack, const TokenOutput& output,
                                        const StackSource& source, const Pass& pass);

}  // namespace attend
