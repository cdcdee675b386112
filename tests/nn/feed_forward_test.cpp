#include "attend/nn/feed_forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace attend {
namespace feed_forward_test {

double formula(HiddenActivation activation, double x) {
  switch (activation) {
    case HiddenActivation::relu:
      return std::max(0.0, x);
    case HiddenActivation::gelu:
      return x * std::erfc(-x / std::numbers::sqrt2) / 2;
    case HiddenActivation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case HiddenActivation::tanh:
      return std::tanh(x);
    case HiddenActivation::swish:
      return x / (1 + std::exp(-x));
  }
  return 0;
}

TEST(HiddenActivations, AreTheirFormulasInPlaceToo) {
  const at::Tensor x = at::linspace(-4, 4, 81, at::kDouble);
  for (size_t i = 0; i < names_of(HiddenActivation{}).size(); ++i) {
    const auto activation = static_cast<HiddenActivation>(i);
    const at::Tensor made = activated(x, activation);
    at::Tensor changed = x.clone();
    activate(changed, activation);
    EXPECT_TRUE(changed.equal(made)) << name_of(activation);
    for (int64_t k = 0; k < x.numel(); ++k)
      EXPECT_NEAR(made[k].item<double>(), formula(activation, x[k].item<double>()), 1e-13)
          << name_of(activation);
  }
}

TEST(Swish, HasAGradientEverywhere) {
  for (const double far : {-1e4, 1e4}) {
    const at::Tensor x = at::full({1}, far, at::kFloat).requires_grad_(true);
    activated(x, HiddenActivation::swish).sum().backward();
    EXPECT_EQ(x.grad().item<double>(), far > 0 ? 1 : 0);
  }
}

}  // namespace feed_forward_test
}  // namespace attend
