#include "attend/decode/packed_decoder.h"

#include "attend/decode/packed_state-inl.h"

namespace attend {

using at::Tensor;

class PackedDecoder::Steps : public StackSteps {
 public:
  Steps(const PackedDecoder& decoder, std::shared_ptr<PackedStack::State> state)
      : decoder_(decoder), state_(std::move(state)) {}

  int64_t positions() const override { return state_->steps(); }

  void read(const Tensor& x, const Pass& /*pass*/) override {
    decoder_.stack_.step(x, *state_, /*with_weights=*/false);
  }

  StepResult step(const Tensor& x, bool with_weights, const Pass& /*pass*/) override {
    const PackedStack::Vectors vectors = decoder_.stack_.step(x, *state_, with_weights);
    return {decoder_.output_.all(vectors.data, x.size(0), vectors.stride), vectors.weights};
  }

  NextTokens next(const Tensor& x, const NextQuery& query) override {
    const PackedStack::Vectors vectors = decoder_.stack_.step(x, *state_, query.with_weights);
    NextTokens next = decoder_.output_.best(vectors.data, x.size(0), vectors.stride, query);
    next.weights = vectors.weights;
    return next;
  }

  void reorder(const Tensor& rows, bool /*same_sources*/) override { state_->reorder(rows); }

  bool appends() const override { return true; }

  void append(StackSteps& other) override { state_->append(*static_cast<Steps&>(other).state_); }

 private:
  const PackedDecoder& decoder_;
  std::shared_ptr<PackedStack::State> state_;
};

PackedDecoder::PackedDecoder(const TransformerStack& stack, const TokenOutput& output,
                             WeightType weights)
    : stack_(stack, weights), output_(output, weights) {}

std::unique_ptr<const PackedDecoder> PackedDecoder::pack(const TransformerStack& stack,
                                                         const TokenOutput& output,
                                                         WeightType weights) {
  if (!PackedStack::takes(stack) || !PackedOutput::takes(output)) return nullptr;
  return std::unique_ptr<const PackedDecoder>(new PackedDecoder(stack, output, weights));
}

std::unique_ptr<StackSteps> PackedDecoder::start(const StackSource& source, int64_t rows) const {
  return std::make_unique<Steps>(*this, stack_.start(source, rows));
}

}  // namespace attend
