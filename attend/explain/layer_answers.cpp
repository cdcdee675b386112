#include "attend/explain/layer_answers.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <functional>
#include <utility>

#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/stopping-inl.h"
#include "attend/nn/attention_trace.h"

namespace attend {
namespace {

using at::Tensor;

// Keeps the inputs and the output of the layers of the last stack.
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

// Replaces the output of a stack.
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

// Calls `tell` with the log probabilities [T, V] after each layer, in order, and returns the names
// of the layers.
std::vector<std::string> read_layers(const Subject& subject,
                                     const std::function<void(const Tensor& answers)>& tell) {
  const at::NoGradGuard not_recorded;
  StackVectors stack;
  subject.network().log_probabilities(subject.batch, Pass{}.watched_by(stack));
  std::vector<std::string> layers;
  for (const Tensor& vectors : stack.kept()) {
    check_stopped();
    OtherTop lens(stack.part(), vectors);
    tell(float64_on_cpu(
        subject.network().log_probabilities(subject.batch, Pass{}.watched_by(lens))[0]));
    const auto layer = static_cast<int64_t>(layers.size());
    layers.push_back(layer == 0 ? "input"
                                : TracedAttention{{stack.part(), layer, false}, {}}.name());
  }
  return layers;
}

}  // namespace

LayerAnswers layer_answers(const Subject& subject) {
  std::vector<Tensor> answers;
  LayerAnswers result;
  result.layers =
      read_layers(subject, [&](const Tensor& of_layer) { answers.push_back(of_layer); });
  if (!answers.empty()) result.log_probabilities = at::stack(answers);
  return result;
}

std::optional<PageLens> page_lens(const Subject& subject) {
  if (!subject.model.answers().has_probabilities()) return std::nullopt;
  PageLens lens;
  lens.layers = read_layers(subject, [&](const Tensor& log_probabilities) {
    const auto [best, tokens] = log_probabilities.max(1);
    for (int64_t t = 0; t < std::ssize(subject.target); ++t) {
      const Tensor own = log_probabilities[t][subject.batch.target[0][t]];
      lens.cells.push_back({subject.model.target_vocabulary.token(tokens[t].item<int64_t>()),
                            std::exp(best[t].item<double>()), std::exp(own.item<double>())});
    }
  });
  return lens.layers.empty() ? std::nullopt : std::optional(lens);
}

}  // namespace attend
