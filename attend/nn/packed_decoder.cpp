#include "attend/nn/packed_decoder.h"

#include <ATen/core/grad_mode.h>

#include "attend/nn/site.h"
#include "attend/ops/attention_watch.h"

namespace attend {

using at::Tensor;
PackedDecoder::PackedDecoder(const TransformerStack& stack, const TokenOutput& output,
                             WeightType weights)
    : stack_(stack, weights), output_(output, weights) {}

std::unique_ptr<const PackedDecoder> PackedDecoder::pack(const TransformerStack& stack,
                                                         const TokenOutput& output,
                                                         WeightType weights) {
  if (!PackedStack::takes(stack) || !PackedOutput::takes(output)) return nullptr;
  return std::unique_ptr<const PackedDecoder>(new PackedDecoder(stack, output, weights));
}

bool PackedDecoder::may_step() {
  return !at::GradMode::is_enabled() && AttentionWatch::current() == nullptr &&
         VectorWatch::current() == nullptr;
}

StepResult PackedDecoder::step(const Tensor& embedded, HeldSteps& state, bool with_weights) const {
  const PackedStack::Vectors vectors = stack_.step(embedded, state, with_weights);
  return {output_.all(vectors.data, embedded.size(0), vectors.stride), vectors.weights};
}

NextTokens PackedDecoder::next(const Tensor& embedded, HeldSteps& state,
                               const NextQuery& query) const {
  const PackedStack::Vectors vectors = stack_.step(embedded, state, query.with_weights);
  NextTokens next = output_.best(vectors.data, embedded.size(0), vectors.stride, query);
  next.weights = vectors.weights;
  return next;
}

}  // namespace attend
