#include "attend/nn/hard_attention.h"

#include <limits>

namespace attend {
namespace {

using at::Tensor;

// Adam moves a parameter by about its rate per step, far less than rewards move early in training.
// The parameter is therefore the average divided by this.
constexpr double speed = 10;

}  // namespace

HardDraw hard_draw(const Tensor& scores, const Tensor& weights) {
  const Tensor outside = scores == -std::numeric_limits<double>::infinity();
  // A row of only -inf would give NaN in softmax and in the derivatives.
  const Tensor finite = scores.masked_fill(outside.all(-1, true), 0.0);
  const Tensor log_p = finite.log_softmax(-1);
  const Tensor listed = log_p.masked_fill(outside, 0.0);
  return {(weights.detach() * listed).sum(-1), -(log_p.exp() * listed).sum(-1)};
}

Tensor rewards_to_go(const Tensor& rewards) { return rewards.flip(-1).cumsum(-1).flip(-1); }

Tensor reinforce_loss(const Tensor& log_probability, const Tensor& returns,
                      const Tensor& baseline) {
  return -((returns - baseline).detach() * log_probability).sum();
}

MovingAverage::MovingAverage(double first) {
  register_parameter("average", torch::full({}, first / speed));
}

Tensor MovingAverage::scaled() const { return named_parameters(false)["average"] * speed; }

Tensor MovingAverage::value() const { return scaled().detach(); }

// Divided by speed^2, so that gradient descent moves the average as for speed = 1: d loss / d
// average = -2 sum (reward - average) / speed, and the average moves by speed times that.
Tensor MovingAverage::loss(const Tensor& rewards, const Tensor& counts) const {
  const Tensor distance = (rewards.detach() - scaled()).masked_fill(counts.logical_not(), 0.0);
  return distance.square().sum() / (speed * speed);
}

}  // namespace attend
