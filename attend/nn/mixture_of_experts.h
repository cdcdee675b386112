#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "attend/nn/feed_forward.h"

namespace attend {

struct MixtureConfig {
  int64_t depth = 0;    // depth of the input and the output
  int64_t hidden = 0;   // units of each expert
  int64_t experts = 8;  // feed-forward networks
  int64_t chosen = 2;   // experts per input, at most `experts`
  double dropout = 0;   // in each expert
  HiddenActivation activation = HiddenActivation::relu;
};

// The sparsely gated mixture of experts (Shazeer et al. 2017). A gate chooses a few of many
// feed-forward networks for each input, and only these are computed. y = sum_i G(x)_i E_i(x), G(x)
// = softmax(keep_top_k(H(x), k)), H(x)_i = (x W_g)_i + noise softplus((x W_noise)_i) (eq. 1-5). If
// one expert is chosen, its weight is 1, and only the balance term trains the gate.
class MixtureOfExperts : public torch::nn::Module {
 public:
  // Error unless 1 <= chosen <= experts.
  explicit MixtureOfExperts(const MixtureConfig& config);

  // x [..., depth] -> the same shape. `present` [...] bool is false for padding, which has output 0
  // and does not count in the balance; undefined: no padding. With a generator, the gate is noisy
  // (eq. 4) and dropout applies. Without one, the choice of experts is deterministic.
  //
  // Adds 0.1 (CV(importance)^2 + CV(load)^2) to the pass's penalties: the paper's weight and its
  // measure of how unevenly the experts are used. The load requires noise; it is omitted without a
  // generator.
  at::Tensor forward(const at::Tensor& x, const Pass& pass, const at::Tensor& present = {});

 private:
  struct Choice {
    at::Tensor experts;  // [N, chosen] int64
    at::Tensor gates;    // [N, chosen], each row sums to 1
    at::Tensor imbalance;
  };
  Choice choose(const at::Tensor& x, const Pass& pass) const;
  at::Tensor mix(const at::Tensor& x, const Choice& choice, const Pass& pass);

  int64_t chosen_;
  at::Tensor gate_, noise_;  // W_g, W_noise [depth, experts]
  std::vector<std::shared_ptr<FeedForward>> experts_;
};

// Probability that each expert is among the `chosen` largest of its row if only its own noise is
// drawn again, [N, experts] (Shazeer et al. 2017, eq. 8-9). clean: x W_g; noisy: clean plus the
// drawn noise; deviation: softplus(x W_noise). Differentiable.
at::Tensor choice_probabilities(const at::Tensor& clean, const at::Tensor& noisy,
                                const at::Tensor& deviation, int64_t chosen);

}  // namespace attend
