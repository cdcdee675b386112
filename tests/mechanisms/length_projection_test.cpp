#include "attend/mechanisms/length_projection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/ops/attention.h"

namespace attend {
namespace length_projection_test {

using at::Tensor;

// sum_t E_pt x_t over the positions before padding.
Tensor by_loops(const Tensor& e, const Tensor& x, const std::vector<int64_t>& lengths) {
  Tensor result = at::zeros({x.size(0), x.size(1), e.size(0), x.size(3)}, at::kDouble);
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t h = 0; h < x.size(1); ++h)
      for (int64_t p = 0; p < e.size(0); ++p)
        for (int64_t t = 0; t < lengths[static_cast<size_t>(b)]; ++t)
          result[b][h][p] += e[p][t] * x[b][h][t];
  return result;
}

TEST(LengthProjection, MixesThePositionsBeforeThePadding) {
  torch::manual_seed(1);
  LengthProjection projection(11, 3);
  projection.to(torch::kDouble);
  const Tensor e = projection.parameters()[0].detach();
  for (const int64_t length : {1, 7, 11}) {
    const Tensor x = torch::randn({2, 2, length, 3}, torch::kDouble);
    torch::NoGradGuard no_gradient;
    EXPECT_TRUE(torch::allclose(projection.forward(x), by_loops(e, x, {length, length})));
    EXPECT_TRUE(torch::allclose(projection.forward(x, torch::tensor({length, int64_t{1}})),
                                by_loops(e, x, {length, 1})));
    EXPECT_TRUE(torch::allclose(projection.forward(x[0]), by_loops(e, x, {length, length})[0]));
  }
}

TEST(LengthProjection, TrainsThroughAttention) {
  torch::manual_seed(2);
  LengthProjection keys(20, 4), values(20, 4);
  const Tensor x = torch::randn({2, 2, 17, 3}).requires_grad_();
  const Tensor lengths = torch::tensor({17, 5});
  const auto [context, lse] = attention(x, keys.forward(x, lengths), values.forward(x, lengths));
  EXPECT_EQ(context.sizes(), x.sizes());
  context.square().sum().backward();
  for (const LengthProjection* each : {&keys, &values}) {
    const Tensor gradient = each->parameters()[0].grad();
    EXPECT_GT(gradient.narrow(1, 0, 17).abs().min().item<double>(), 0);
    EXPECT_EQ(gradient.narrow(1, 17, 3).abs().max().item<double>(), 0);
  }
  EXPECT_GT(x.grad().abs().sum().item<double>(), 0);
}

// With E the identity, of the same length, attention stays exact.
TEST(LengthProjection, OfTheIdentityLeavesAttentionAsItIs) {
  LengthProjection projection(6, 6);
  torch::NoGradGuard no_gradient;
  projection.parameters()[0].copy_(torch::eye(6));
  const Tensor x = torch::randn({1, 1, 6, 3});
  EXPECT_TRUE(torch::allclose(attention(x, projection.forward(x), projection.forward(x)).context,
                              attention(x, x, x).context));
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LengthProjection, SaysWhatItDoesNotTake) {
  using testing::HasSubstr;
  EXPECT_THAT(message_of([] { LengthProjection(4, 5); }),
              HasSubstr("4 positions were to become 5"));
  EXPECT_THAT(message_of([] { LengthProjection(4, 0); }),
              HasSubstr("4 positions were to become 0"));
  const LengthProjection projection(4, 2);
  EXPECT_THAT(message_of([&] {
                projection.forward(torch::ones({5, 3}));
              }),
              HasSubstr("got a sequence of 5 positions, the projection has 4"));
  EXPECT_THAT(message_of([&] { projection.forward(torch::ones({3})); }), HasSubstr("has 1 axes"));
  EXPECT_THAT(message_of([&] { projection.forward({}); }), HasSubstr("has 0 axes"));
  const Tensor x = torch::ones({2, 4, 3});
  for (const Tensor& lengths :
       {torch::tensor({1, 2, 3}), torch::ones({2}), torch::ones({2, 1}, torch::kLong)})
    EXPECT_THAT(message_of([&] { projection.forward(x, lengths); }),
                HasSubstr("there must be one int64 for each entry"));
}

}  // namespace length_projection_test
}  // namespace attend
