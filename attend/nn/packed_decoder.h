#pragma once

#include <memory>

#include "attend/nn/packed_output.h"
#include "attend/nn/packed_stack.h"
#include "attend/nn/token_loss.h"

namespace attend {

// A packed stack with the map from its vectors to tokens: the step of a Transformer behind its
// embedding.
class PackedDecoder {
 public:
  // Null where PackedStack does not take the stack, or the output is not float32 on the CPU.
  static std::unique_ptr<const PackedDecoder> pack(const TransformerStack& stack,
                                                   const TokenOutput& output, WeightType weights);

  // Whether what this thread computes now may take the packed way: no gradients are recorded and
  // nobody watches.
  static bool may_step();

  const PackedStack& stack() const { return stack_; }

  // They do what StepModel's do; `embedded` has the tokens' vectors, [N, depth].
  StepResult step(const at::Tensor& embedded, HeldSteps& state, bool with_weights) const;
  NextTokens next(const at::Tensor& embedded, HeldSteps& state, const NextQuery& query) const;

 private:
  PackedDecoder(const TransformerStack& stack, const TokenOutput& output, WeightType weights);

  PackedStack stack_;
  PackedOutput output_;
};

}  // namespace attend
