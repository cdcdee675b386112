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

// Calls `read` with the log probabilities [T, V] after each layer, in order, and returns the names
// of the layers.
std::vector<std::string> read_layers(const Explanation& explanation,
                                     const std::function<void(const Tensor& answers)>& read) {
  const at::NoGradGuard not_recorded;
  const Subject& subject = explanation.subject();
  const NetworkTrace& trace = explanation.trace(TraceParts::vectors);
  const auto& [part, vectors] = trace.last_stack;
  std::vector<std::string> layers;
  layers.reserve(vectors.size());
  for (size_t layer = 0; layer < vectors.size(); ++layer) {
    Tensor answers = trace.distributions;
    if (layer + 1 < vectors.size()) {
      check_stopped();
      OtherTop lens(part, vectors[layer]);
      answers = subject.network().log_probabilities(subject.batch, Pass{}.watched_by(lens));
    }
    read(float64_on_cpu(answers[0]));
    layers.push_back(layer == 0
                         ? "input"
                         : TracedAttention{{part, static_cast<int64_t>(layer), false}, {}}.name());
  }
  return layers;
}

}  // namespace

LayerAnswers layer_answers(const Explanation& explanation) {
  std::vector<Tensor> answers;
  LayerAnswers result;
  result.layers =
      read_layers(explanation, [&](const Tensor& one_layer) { answers.push_back(one_layer); });
  if (!answers.empty()) result.log_probabilities = at::stack(answers);
  return result;
}

std::optional<PageLens> page_lens(const Explanation& explanation) {
  const Subject& subject = explanation.subject();
  if (!subject.model.answer_kind().has_probabilities()) return std::nullopt;
  PageLens lens;
  lens.layers = read_layers(explanation, [&](const Tensor& log_probabilities) {
    const auto [best, tokens] = log_probabilities.max(1);
    for (int64_t t = 0; t < std::ssize(subject.target); ++t) {
      const Tensor own = log_probabilities[t][subject.batch.target[0][t]];
      lens.cells.push_back({target_name(subject, tokens[t].item<int64_t>()),
                            std::exp(best[t].item<double>()), std::exp(own.item<double>())});
    }
  });
  return lens.layers.empty() ? std::nullopt : std::optional(lens);
}

}  // namespace attend
