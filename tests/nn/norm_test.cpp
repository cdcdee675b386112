#include "attend/nn/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/nn/module_gradients.h"

namespace attend {
namespace norm_test {

using at::Tensor;

// Zhang & Sennrich 2019, eq. 4, number by number.
TEST(Norm, DividesByTheRootMeanSquare) {
  for (const int64_t depth : {1, 3, 59, 111})
    for (const double size : {1e-150, 1e-3, 1.0, 1e150}) {
      torch::manual_seed(depth);
      Norm norm(depth, NormKind::rms, 1e-6);
      norm.to(torch::kDouble);
      const at::NoGradGuard no_gradient;
      Tensor weight = norm.named_parameters()["weight"];
      EXPECT_EQ(norm.named_parameters().size(), 1U);
      weight.uniform_(-2, 2);
      const Tensor x = size * torch::randn({2, 3, depth}, torch::kDouble);
      const Tensor got = norm.forward(x, {}, 0.5);
      for (int64_t row = 0; row < 6; ++row) {
        const Tensor own = x.view({6, depth})[row];
        double squares = 0;
        for (int64_t k = 0; k < depth; ++k) squares += std::pow(own[k].item<double>(), 2);
        for (int64_t k = 0; k < depth; ++k) {
          const double want = 0.5 * own[k].item<double>() * weight[k].item<double>() /
                              std::sqrt(squares / static_cast<double>(depth) + 1e-6);
          // Sums of up to 111 squares in another order, each with a rounding of 2^-53.
          EXPECT_NEAR(got.view({6, depth})[row][k].item<double>(), want, 1e-13 * std::abs(want))
              << depth << " " << size;
        }
      }
    }
}

TEST(Norm, LayerIsLibTorchsAndHasABias) {
  torch::manual_seed(1);
  Norm norm(5, NormKind::layer, 1e-3);
  norm.to(torch::kDouble);
  const auto p = norm.named_parameters();
  const at::NoGradGuard no_gradient;
  for (const auto& item : p) item.value().uniform_(-1, 1);
  const Tensor x = torch::randn({4, 5}, torch::kDouble);
  const Tensor want = at::layer_norm(x, {5}, p["weight"], p["bias"], 1e-3);
  EXPECT_TRUE(at::equal(norm.forward(x, {}), want));
  EXPECT_TRUE(at::allclose(norm.forward(x, {}, 3), 3 * want, 1e-14, 1e-14));
}

TEST(Norm, HasTheGradientsOfDifferences) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    torch::manual_seed(2);
    Norm norm(7, kind, 1e-2);
    norm.to(torch::kDouble);
    const Tensor x = torch::randn({3, 7}, torch::kDouble);
    const Tensor seen = torch::randn({3, 7}, torch::kDouble);
    reference::expect_parameter_gradients(norm,
                                          [&] { return (norm.forward(x, {}, 0.3) * seen).sum(); });
  }
}

}  // namespace norm_test
}  // namespace attend
