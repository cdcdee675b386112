#include "attend/nn/feed_forward.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t max_hidden_numbers = int64_t{1} << 22;

struct ActivationRow {
  Tensor (*made)(const Tensor& x);
  void (*in_place)(Tensor& x);
};

// LibTorch's gelu computes the last numbers of a tensor with different bits, so results would
// depend on the other sequences of a batch.
Tensor gelu_by_tanh(const Tensor& x) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  return x * 0.5 * ((x * ((x * x) * 0.044715 + 1) * scale).tanh() + 1);
}

// Same as LibTorch's silu; with exp, the gradient would overflow to NaN.
Tensor swish(const Tensor& x) { return x * 0.5 * ((x * 0.5).tanh() + 1); }

const ActivationRow& row_of(HiddenActivation activation) {
  static const ActivationRow table[] = {
      {[](const Tensor& x) { return x.relu(); }, [](Tensor& x) { x.relu_(); }},
      {[](const Tensor& x) { return at::gelu(x); }, [](Tensor& x) { at::gelu_(x); }},
      {gelu_by_tanh, [](Tensor& x) { x.copy_(gelu_by_tanh(x)); }},
      {[](const Tensor& x) { return x.tanh(); }, [](Tensor& x) { x.tanh_(); }},
      {swish, [](Tensor& x) { x.copy_(swish(x)); }}};
  return table[static_cast<size_t>(activation)];
}

}  // namespace

Tensor activated(const Tensor& x, HiddenActivation activation, const Pass& pass) {
  return pass.activated(x, row_of(activation).made);
}

void activate(Tensor& x, HiddenActivation activation) { row_of(activation).in_place(x); }

FeedForward::FeedForward(int64_t depth, int64_t hidden, double dropout, HiddenActivation activation,
                         bool gated)
    : hidden_(register_module("hidden", Linear(depth, hidden))),
      output_(register_module("output", Linear(hidden, depth))),
      dropout_(dropout),
      activation_(activation) {
  if (gated) gate_ = register_module("gate", Linear(depth, hidden));
}

Tensor FeedForward::forward(const Tensor& x, const Pass& pass) {
  const auto made_of = [&](const Tensor& tokens) {
    Tensor active = activated(hidden_->forward(tokens, pass), activation_, pass);
    if (gate_) active = active * pass.watched(WatchedVectors::gate, gate_->forward(tokens, pass));
    return output_->forward(attend::dropout(active, dropout_, pass), pass);
  };
  const int64_t hidden = hidden_->weight.size(0);
  // A watch may compute hundreds of copies of a text; hidden vectors need the most memory.
  if (pass.watch == nullptr || at::GradMode::is_enabled() || x.dim() < 3 ||
      x.size(0) * x.size(1) * hidden <= max_hidden_numbers)
    return made_of(x);
  std::vector<Tensor> parts;
  const int64_t at_once = std::max<int64_t>(1, max_hidden_numbers / (x.size(0) * hidden));
  for (const Tensor& tokens : x.split(at_once, 1)) parts.push_back(made_of(tokens));
  return at::cat(parts, 1);
}

}  // namespace attend
