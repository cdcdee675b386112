#include "attend/nn/feed_forward.h"

namespace attend {

FeedForward::FeedForward(int64_t depth, int64_t hidden, double dropout)
    : hidden_(register_module("hidden", torch::nn::Linear(depth, hidden))),
      output_(register_module("output", torch::nn::Linear(hidden, depth))),
      dropout_(dropout) {}

at::Tensor FeedForward::forward(const at::Tensor& x, const Noise& noise) {
  return output_->forward(attend::dropout(hidden_->forward(x).relu(), dropout_, noise));
}

}  // namespace attend
