#include "attend/decode/stack_steps.h"

#include <utility>

#include "attend/base/error.h"
#include "attend/nn/attention_trace.h"

namespace attend {
namespace {

using at::Tensor;

class PlainStackSteps : public StackSteps {
 public:
  PlainStackSteps(TransformerStack& stack, TokenOutput output, const StackSource& source,
                  const Pass& pass)
      : stack_(stack), output_(std::move(output)), caches_(stack.start(source, pass)) {}

  int64_t positions() const override { return caches_.positions; }

  void read(const Tensor& x, const Pass& pass) override { stack_.step(x, caches_, pass); }

  StepResult step(const Tensor& x, bool with_weights, const Pass& pass) override {
    AttentionTrace trace;
    const Tensor vectors =
        stack_.step(x.unsqueeze(1), caches_, with_weights ? pass.watched_by(trace) : pass);
    StepResult result;
    result.log_probabilities = output_.logits(vectors.squeeze(1)).log_softmax(-1);
    if (with_weights && (!caches_.cross.empty() || stack_.attends(stack_.layers() - 1)))
      result.weights =
          trace.mean_weights({pass.site.part, stack_.layers(), !caches_.cross.empty()}).squeeze(1);
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
  return next_of(step(x, query.with_weights, {}), query);
}

void StackSteps::append(StackSteps& /*other*/) {
  fail("[decoding] steps of LibTorch cannot append other hypotheses; check appends() first");
}

std::unique_ptr<StackSteps> stack_steps(TransformerStack& stack, const TokenOutput& output,
                                        const StackSource& source, const Pass& pass) {
  return std::make_unique<PlainStackSteps>(stack, output, source, pass);
}

}  // namespace attend
