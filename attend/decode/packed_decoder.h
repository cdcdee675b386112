#pragma once

#include <memory>

#include "attend/decode/packed_output.h"
#include "attend/decode/packed_stack.h"
#include "attend/decode/stack_steps.h"

namespace attend {

// A packed stack with its output layer: the steps of a Transformer decoder after the embedding.
class PackedDecoder {
 public:
  // Null if PackedStack does not support the stack, or the output is not float32 on the CPU.
  static std::unique_ptr<const PackedDecoder> pack(const TransformerStack& stack,
                                                   const TokenOutput& output, WeightType weights);

  // State before the first position, as PackedStack::start. The decoder must outlive the steps.
  std::unique_ptr<StackSteps> start(const StackSource& source, int64_t rows = 0) const;

 private:
  class Steps;

  PackedDecoder(const TransformerStack& stack, const TokenOutput& output, WeightType weights);

  PackedStack stack_;
  PackedOutput output_;
};

}  // namespace attend
