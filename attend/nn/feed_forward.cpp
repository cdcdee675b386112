#include "attend/nn/feed_forward.h"

namespace attend {

FeedForward::FeedForward(int64_t depth, int64_t hidden, double dropout, HiddenActivation activation)
    : hidden_(register_module("hidden", Linear(depth, hidden))),
      output_(register_module("output", Linear(hidden, depth))),
      dropout_(dropout),
      activation_(activation) {}

at::Tensor FeedForward::forward(const at::Tensor& x, const Pass& pass) {
  const at::Tensor hidden = hidden_->forward(x, pass);
  const at::Tensor active =
      activation_ == HiddenActivation::relu ? hidden.relu() : at::gelu(hidden);
  return output_->forward(attend::dropout(active, dropout_, pass), pass);
}

}  // namespace attend
