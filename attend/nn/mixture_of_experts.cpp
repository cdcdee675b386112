#include "attend/nn/mixture_of_experts.h"

#include <ATen/OpMathType.h>

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// Weight of the imbalance in the objective (section 4).
constexpr double balance_weight = 0.1;

// The squared coefficient of variation: variance / mean^2 (eq. 7 and 11).
Tensor squared_variation(const Tensor& amounts) {
  return amounts.var(0, /*unbiased=*/false) / amounts.mean().square();
}

// Drawn on the CPU, because the generator is there.
Tensor normal_noise(const Tensor& like, const Pass& pass) {
  return at::randn(like.sizes(), pass.generator, at::toOpMathType(like.scalar_type()))
      .to(like.options());
}

}  // namespace

Tensor choice_probabilities(const Tensor& clean, const Tensor& noisy, const Tensor& deviation,
                            int64_t chosen) {
  if (chosen == noisy.size(-1)) return at::ones_like(noisy);
  const Tensor largest = std::get<0>(noisy.topk(chosen + 1, -1));
  const Tensor last_in = largest.narrow(-1, chosen - 1, 1),
               first_out = largest.narrow(-1, chosen, 1);
  // To be chosen again, a chosen expert must exceed the first one outside, and any other expert the
  // last chosen one.
  const Tensor bar = at::where(noisy > first_out, first_out, last_in);
  return ((clean - bar) / deviation / std::sqrt(2.0)).erf().add(1).div(2);
}

MixtureOfExperts::MixtureOfExperts(const MixtureConfig& config) : chosen_(config.chosen) {
  if (config.chosen < 1 || config.chosen > config.experts)
    fail("[mixture of experts] {} of {} experts are chosen; choose 1 to {}", config.chosen,
         config.experts, config.experts);
  if (config.depth < 1 || config.hidden < 1)
    fail("[mixture of experts] depth is {}, hidden {}; both must be 1 or more", config.depth,
         config.hidden);
  // Zero, so that all experts are equally likely at the start of training (appendix A).
  gate_ = register_parameter("gate", torch::zeros({config.depth, config.experts}));
  noise_ = register_parameter("noise", torch::zeros({config.depth, config.experts}));
  experts_.reserve(static_cast<size_t>(config.experts));
  for (int64_t i = 0; i < config.experts; ++i)
    experts_.push_back(
        register_module("expert" + std::to_string(i),
                        std::make_shared<FeedForward>(config.depth, config.hidden, config.dropout,
                                                      config.activation)));
}

MixtureOfExperts::Choice MixtureOfExperts::choose(const Tensor& x, const Pass& pass) const {
  // Under LibTorch's autocast, products have another dtype than x.
  const auto mapped = [&](const Tensor& weight) {
    return at::matmul(x, weight).to(x.scalar_type());
  };
  const Tensor clean = mapped(gate_);
  Tensor deviation, noisy = clean;
  if (pass.generator) {
    deviation = at::softplus(mapped(noise_));
    noisy = clean + normal_noise(clean, pass) * deviation;
  }
  auto [kept, experts] = noisy.topk(chosen_, -1);
  const Tensor gates = kept.softmax(-1);
  if (x.size(0) == 0) return {experts, gates, at::zeros({}, x.options())};
  const Tensor whole = at::zeros(clean.sizes(), gates.options()).scatter(-1, experts, gates);
  Tensor imbalance = squared_variation(whole.sum(0));
  if (pass.generator)
    imbalance = imbalance +
                squared_variation(choice_probabilities(clean, noisy, deviation, chosen_).sum(0));
  return {std::move(experts), gates, std::move(imbalance)};
}

// Sorts inputs by expert, applies each expert to its part, and adds the results at the positions of
// the inputs.
Tensor MixtureOfExperts::mix(const Tensor& x, const Choice& choice, const Pass& pass) {
  const Tensor expert = choice.experts.flatten();
  const Tensor order = std::get<1>(expert.sort(/*stable=*/true, 0, /*descending=*/false));
  const Tensor row = at::floor_divide(order, chosen_);
  const Tensor counts =
      at::bincount(expert, {}, static_cast<int64_t>(experts_.size())).to(at::kCPU);
  const Tensor inputs = x.index_select(0, row);
  std::vector<Tensor> answers;
  answers.reserve(experts_.size());
  int64_t begin = 0;
  for (size_t i = 0; i < experts_.size(); ++i) {
    const int64_t count = counts.data_ptr<int64_t>()[i];
    answers.push_back(experts_[i]->forward(inputs.narrow(0, begin, count), pass));
    begin += count;
  }
  const Tensor gates = choice.gates.flatten().index_select(0, order).unsqueeze(1);
  const Tensor weighed = (at::cat(answers) * gates).to(x.scalar_type());
  return at::zeros_like(x).index_add(0, row, weighed);
}

Tensor MixtureOfExperts::forward(const Tensor& x, const Pass& pass, const Tensor& present) {
  if (x.dim() < 1 || x.size(-1) != gate_.size(0))
    fail("[mixture of experts] x has shape [{}]; its last axis must be {} long",
         fmt::join(x.sizes(), ", "), gate_.size(0));
  if (present.defined() && present.sizes() != x.sizes().slice(0, x.dim() - 1))
    fail(
        "[mixture of experts] present has shape [{}], x [{}]; they must match but for the last "
        "axis",
        fmt::join(present.sizes(), ", "), fmt::join(x.sizes(), ", "));
  const Tensor all = x.reshape({-1, x.size(-1)});
  const Tensor rows = present.defined() ? present.flatten().nonzero().squeeze(1) : Tensor();
  const Tensor inputs = rows.defined() ? all.index_select(0, rows) : all;
  const Choice choice = choose(inputs, pass);
  if (pass.penalties != nullptr) pass.penalties->push_back(choice.imbalance * balance_weight);
  Tensor output = mix(inputs, choice, pass);
  if (rows.defined()) output = at::zeros_like(all).index_copy(0, rows, output);
  return output.view(x.sizes());
}

}  // namespace attend
