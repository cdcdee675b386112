#include "attend/nn/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <cmath>

#include "attend/nn/shared_sequence.h"
#include "tests/support/thread_world.h"

namespace attend {
namespace dropout_test {

using at::Tensor;

Pass noise_of(uint64_t seed) {
  return {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
}

TEST(Dropout, KeepsTheExpectation) {
  // Two rows of the hash and part of a third.
  constexpr int64_t count = (int64_t{2} << 20) + 59;
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor x = dropout(torch::ones({count}, torch::kDouble), p, noise_of(3));
    const Tensor kept = x != 0;
    EXPECT_TRUE(
        torch::allclose(x.masked_select(kept), torch::full({1}, 1 / (1 - p), torch::kDouble)));
    // Five standard errors of a share of `count` draws. The second row drops other elements.
    const double share = kept.to(torch::kDouble).mean().item<double>();
    EXPECT_NEAR(share, 1 - p, 5 * std::sqrt(p * (1 - p) / count));
    EXPECT_FALSE(torch::equal(kept.slice(0, 0, 1000), kept.slice(0, 1 << 20, (1 << 20) + 1000)));
  }
}

// Neighbours in every direction of a matrix are dropped independently.
TEST(Dropout, DrawsEachPlaceByItself) {
  constexpr int64_t side = 1000;
  const Tensor dropped =
      (dropout(torch::ones({side, side}), 0.5, noise_of(4)) == 0).to(torch::kDouble) - 0.5;
  for (const auto& [down, right] : {std::pair{0, 1}, {1, 0}, {1, 1}, {2, 0}, {0, 7}}) {
    const Tensor a = dropped.slice(0, down).slice(1, right);
    const Tensor b = dropped.slice(0, 0, side - down).slice(1, 0, side - right);
    // A product of two elements is 1/4 or -1/4 with equal probability: five standard errors of the
    // mean.
    EXPECT_NEAR((a * b).mean().item<double>(), 0, 5 * 0.25 / side) << down << right;
  }
}

TEST(Dropout, IsTheSameForwardAndBackwardTwice) {
  const Tensor x = torch::randn({59, 3}, torch::kDouble).t().requires_grad_();
  const Tensor out = dropout(x, 0.3, noise_of(5));
  const Tensor mask = (out / x).detach();
  const Tensor slope =
      torch::autograd::grad({out.square().sum()}, {x}, {}, {}, /*create_graph=*/true)[0];
  EXPECT_TRUE(torch::allclose(slope, 2 * mask * mask * x));
  const Tensor curve = torch::autograd::grad({slope.sum()}, {x})[0];
  EXPECT_TRUE(torch::allclose(curve, 2 * mask * mask));
}

// The dropped elements and the factors are equal in every dtype; 16-bit results are rounded.
TEST(Dropout, IsTheSameInEveryDtype) {
  const Tensor x = torch::ones({31, 7});
  const Tensor wanted = dropout(x, 0.3, noise_of(6));
  for (const auto type : {torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    const Tensor found = dropout(x.to(type), 0.3, noise_of(6));
    EXPECT_EQ(found.scalar_type(), type);
    EXPECT_TRUE(torch::allclose(found.to(torch::kFloat), wanted, 0x1p-8, 0));
    for (const bool recorded : {false, true}) {
      const Tensor leaf = x.to(type).requires_grad_();
      const at::AutoGradMode mode(recorded);
      EXPECT_EQ(dropout(leaf, 0.3, noise_of(6)).requires_grad(), recorded);
    }
  }
}

TEST(Dropout, ReadsNumbersAsTheyAre) {
  const Tensor x = torch::randn({31, 7}), negated = at::_neg_view(x.neg());
  EXPECT_TRUE(torch::equal(dropout(negated, 0.3, noise_of(6)), dropout(x, 0.3, noise_of(6))));
}

TEST(Dropout, HasForwardMode) {
  const Tensor x = torch::randn({31, 7}), tangent = torch::randn({31, 7});
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  {
    const Tensor out = dropout(at::_make_dual(x, tangent, level), 0.3, noise_of(6));
    EXPECT_TRUE(torch::equal(out._fw_grad(level), dropout(tangent, 0.3, noise_of(6))));
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

// If processes share a sequence, each drops the elements that one process would drop.
TEST(Dropout, FollowsTheWholeSequence) {
  constexpr int64_t length = 9;
  for (const auto type : {torch::kFloat, torch::kHalf})
    for (const int64_t batch : {0, 3}) {
      const Tensor whole = torch::ones({batch, length, 4}, type);
      const Tensor wanted = dropout(whole, 0.4, noise_of(8));
      ThreadWorld(2).run([&](Communicator& world) {
        Pass pass = noise_of(8);
        pass.world = &world;
        const SharedSequence sequence(pass, length);
        const Tensor found = dropout(sequence.own(whole), 0.4, pass.over(sequence));
        EXPECT_TRUE(torch::equal(found, sequence.own(wanted)));
      });
    }
}

TEST(Dropout, FollowsItsNoise) {
  const Tensor x = torch::ones({111});
  EXPECT_TRUE(torch::equal(dropout(x, 0.5, noise_of(1)), dropout(x, 0.5, noise_of(1))));
  EXPECT_FALSE(torch::equal(dropout(x, 0.5, noise_of(1)), dropout(x, 0.5, noise_of(2))));
  const Pass generator = noise_of(1);
  EXPECT_FALSE(torch::equal(dropout(x, 0.5, generator), dropout(x, 0.5, generator)));
  EXPECT_TRUE(torch::equal(dropout(x, 0.5, Pass{}), x));
}

}  // namespace dropout_test
}  // namespace attend
