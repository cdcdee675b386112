#include "attend/explain/layer_answers.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/nn/attention_trace.h"

namespace attend {
namespace {

using at::Tensor;

// Keeps what the layers of the last stack read and give.
class StackVectors : public Watch {
 public:
  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    if (which == WatchedVectors::layer && rest.site.layer == 1) kept_.clear();
    if (which == WatchedVectors::layer || which == WatchedVectors::top) kept_.push_back(x);
    if (which == WatchedVectors::top) part_ = rest.site.part;
    return x;
  }

  const std::vector<Tensor>& kept() const { return kept_; }
  NetworkPart part() const { return part_; }

 private:
  std::vector<Tensor> kept_;
  NetworkPart part_ = NetworkPart::none;
};

// Has a stack give other vectors than its own.
class OtherTop : public Watch {
 public:
  OtherTop(NetworkPart part, Tensor given) : part_(part), given_(std::move(given)) {}

  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    return which == WatchedVectors::top && rest.site.part == part_ ? given_ : x;
  }

 private:
  NetworkPart part_;
  Tensor given_;
};

}  // namespace

LayerAnswers layer_answers(const Subject& subject) {
  const at::NoGradGuard not_recorded;
  StackVectors stack;
  subject.network().log_probabilities(subject.batch, Pass{}.watched_by(stack));
  const auto count = std::ssize(stack.kept());
  if (count == 0) fail("view lens: the model tells of no layers that answers could be read off");
  OtherTop lens(stack.part(), at::cat(stack.kept()));
  const Tensor answers =
      subject.network().log_probabilities(repeated(subject.batch, count), Pass{}.watched_by(lens));
  LayerAnswers result{{"input"}, float64_on_cpu(answers)};
  for (int64_t layer = 1; layer < count; ++layer)
    result.layers.push_back(TracedAttention{{stack.part(), layer, false}, {}}.name());
  return result;
}

}  // namespace attend
