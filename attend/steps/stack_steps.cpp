#include "attend/steps/stack_steps.h"

#include <utility>

namespace attend {
namespace {

using at::Tensor;

class PlainStackSteps : public StackSteps {
 public:
  PlainStackSteps(TransformerStack& stack, TokenOutput output, const StackSource& source)
      : stack_(stack), output_(std::move(output)), caches_(stack.start(source)) {}

  int64_t positions() const override { return caches_.positions(); }

  void read(const Tensor& x) override { stack_.step(x, caches_); }

  StepResult step(const Tensor& x, bool with_weights) override {
    std::vector<LayerTrace> trace;
    const Tensor vectors = stack_.step(x.unsqueeze(1), caches_, with_weights ? &trace : nullptr);
    StepResult result;
    result.log_probabilities = output_.logits(vectors.squeeze(1)).log_softmax(-1);
    if (with_weights) {
      const MultiHeadResult& read = caches_.cross.empty() ? trace.back().self : trace.back().cross;
      result.weights = multi_head_weights(read).mean(1).squeeze(1);
    }
    return result;
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    caches_.reorder(rows, same_sources);
  }

 private:
  TransformerStack& stack_;
  TokenOutput output_;
  StackCaches caches_;
};

}  // namespace

NextTokens StackSteps::next(const Tensor& x, const NextQuery& query) {
  return next_of(step(x, query.with_weights), query);
}

std::unique_ptr<StackSteps> stack_steps(TransformerStack& stack, const TokenOutput& output,
                                        const StackSource& source) {
  return std::make_unique<PlainStackSteps>(stack, output, source);
}

}  // namespace attend
