#include "attend/nn/positioned_embedding.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "attend/base/error.h"
#include "tests/support/seed.h"

namespace attend {
namespace positioned_embedding_test {

using at::Tensor;

constexpr int64_t count = 11, longest = 5000;

TEST(PositionedEmbedding, NextIsForwardOfOneToken) {
  torch::manual_seed(test::seed());
  const Tensor tokens = at::tensor({3, 0, 10, 3}, at::kLong);
  for (const int64_t depth : {1, 7, 32}) {
    for (const Positions positions :
         {Positions::sinusoidal, Positions::learned, Positions::rotary, Positions::none,
          Positions::sinusoidal_halves, Positions::sinusoidal_fairseq}) {
      if (positions == Positions::sinusoidal_fairseq && depth % 2 != 0) continue;
      PositionedEmbedding embedding(count, depth, {positions, longest});
      for (const int64_t offset : {0, 70, 3, 4095, 4096, 4999}) {
        const std::vector<int64_t> at_offset(4, offset);
        const Tensor recorded = embedding.next(tokens, at_offset);
        EXPECT_TRUE(recorded.requires_grad());
        const at::NoGradGuard no_gradient;
        const Tensor whole = embedding.forward(tokens.unsqueeze(1), offset, 0, {}).squeeze(1);
        EXPECT_TRUE(at::equal(embedding.next(tokens, at_offset), whole));
        EXPECT_TRUE(at::equal(recorded, whole));
      }
    }
  }
}

TEST(PositionedEmbedding, TokensHavePositionsOfTheirOwn) {
  torch::manual_seed(test::seed());
  const std::vector<int64_t> positions = {70, 0, 4099, 3};
  const Tensor tokens = at::tensor({3, 0, 10, 3}, at::kLong);
  for (const Positions kind : {Positions::sinusoidal, Positions::learned, Positions::rotary,
                               Positions::none, Positions::sinusoidal_halves}) {
    PositionedEmbedding embedding(count, 7, {kind, longest});
    const Tensor recorded = embedding.next(tokens, positions);
    const at::NoGradGuard no_gradient;
    const Tensor together = embedding.next(tokens, positions);
    EXPECT_TRUE(at::equal(recorded, together));
    for (int64_t n = 0; n < 4; ++n)
      EXPECT_TRUE(at::equal(together[n], embedding.next(tokens.narrow(0, n, 1),
                                                        {positions[static_cast<size_t>(n)]})[0]));
  }
}

TEST(PositionedEmbedding, SharesTokensButNotPositions) {
  torch::manual_seed(test::seed());
  const Tensor tokens = at::tensor({3, 0, 10, 3}, at::kLong);
  const EmbeddingForm form{
      .positions = Positions::learned, .maximum = 6, .scaled = true, .norm_epsilon = 1e-3};
  PositionedEmbedding first(count, 8, form), second(first, form);
  EXPECT_TRUE(second.weight().is_same(first.weight()));
  EXPECT_EQ(first.named_parameters().size(), 4);
  EXPECT_EQ(second.named_parameters().size(), 3);
  const at::NoGradGuard no_gradient;
  for (PositionedEmbedding* each : {&first, &second}) {
    const auto own = each->named_parameters();
    own["norm.weight"].normal_();
    own["norm.bias"].normal_();
    const Tensor sum = at::embedding(first.weight(), tokens) * std::sqrt(8.0) +
                       own["positions.table"].narrow(0, 2, 4);
    const Tensor expected =
        at::layer_norm(sum.to(at::kDouble), {8}, own["norm.weight"].to(at::kDouble),
                       own["norm.bias"].to(at::kDouble), 1e-3);
    const Tensor found = each->forward(tokens.unsqueeze(0), 2, 0, {})[0];
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-5);
    EXPECT_TRUE(at::equal(found, each->next(tokens, {2, 3, 4, 5})));
  }
}

// Cached position vectors do not depend on earlier requests.
TEST(PositionedEmbedding, AddsTheVectorsOfItsPositions) {
  const at::NoGradGuard no_gradient;
  PositionedEmbedding embedding(count, 6, {Positions::sinusoidal, longest});
  const Tensor tokens = at::arange(count, at::kLong).unsqueeze(0);
  const Tensor scaled = embedding.weight() * std::sqrt(6.0);
  for (const int64_t offset : {2, 0, 90, 4090, 40}) {
    const Tensor want = scaled + sinusoidal_positions(count, 6, offset);
    EXPECT_TRUE(at::allclose(embedding.forward(tokens, offset, 0, {})[0], want, 0, 1e-6));
  }
}

// Equal tokens get the gradient that one row in their place would have.
TEST(PositionedEmbedding, EqualTokensHaveOneGradient) {
  torch::manual_seed(test::seed());
  PositionedEmbedding embedding(count, 4,
                                {.positions = Positions::none, .equal = {{5, 0, 1}, {6, 2}}});
  embedding.to(torch::kDouble);
  const Tensor rows = embedding.weight().detach().clone();
  EXPECT_TRUE(rows[0].equal(rows[5]) && rows[1].equal(rows[5]) && rows[2].equal(rows[6]));
  EXPECT_FALSE(rows[5].equal(rows[6]));
  const Tensor factors = torch::randn({count, 4}, torch::kDouble);
  const Tensor tokens = at::arange(count, at::kLong).unsqueeze(0);
  // As input, and as the matrix of an output.
  const Tensor sum = (embedding.forward(tokens, 0, 0, {})[0] * factors).sum() +
                     (embedding.weight() * factors).sum();
  sum.backward();
  const Tensor expected = factors * (std::sqrt(4.0) + 1);
  for (const std::vector<int64_t>& group : {std::vector<int64_t>{5, 0, 1}, {6, 2}}) {
    const Tensor whole = expected.index_select(0, at::tensor(group, at::kLong)).sum(0);
    for (const int64_t token : group) expected[token].copy_(whole);
  }
  // Sums of up to six numbers of about 10.
  EXPECT_TRUE(at::allclose(embedding.weight().grad(), expected, 0, 1e-13));
  embedding.draw(0.01);
  EXPECT_TRUE(embedding.weight()[0].equal(embedding.weight()[5]));
  EXPECT_LT(embedding.weight().abs().max().item<double>(), 0.1);
}

TEST(PositionedEmbedding, RefusesTokensThatItHasNot) {
  const at::NoGradGuard no_gradient;
  PositionedEmbedding embedding(count, 4, {Positions::none, longest});
  for (const int64_t token : {int64_t{-1}, count})
    EXPECT_THROW(embedding.next(at::tensor({token}, at::kLong), {0}), Error);
  for (const int64_t token : {int64_t{-1}, count})
    EXPECT_THROW(PositionedEmbedding(count, 4, {.equal = {{token, 0}}})
                     .forward(at::zeros({1, 1}, at::kLong), 0, 0, {}),
                 Error);
}

}  // namespace positioned_embedding_test
}  // namespace attend
