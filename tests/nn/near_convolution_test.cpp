#include "attend/nn/near_convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/nn/transformer_stack.h"
#include "tests/support/files.h"

namespace attend {
namespace near_convolution_test {

using at::Tensor;
using testing::HasSubstr;

// LibTorch's convolution of each sequence without its padding.
TEST(NearConvolution, IsAConvolutionOfEachSequence) {
  torch::manual_seed(3);
  NearConvolution layer({.depth = 4, .width = 5, .activation = HiddenActivation::gelu});
  layer.to(torch::kDouble);
  const at::NoGradGuard no_gradient;
  const Tensor input = torch::randn({2, 7, 4}, torch::kDouble), x = torch::randn_like(input);
  const Tensor lengths = at::tensor({7, 3});
  const Tensor present = at::arange(7).unsqueeze(0) < lengths.unsqueeze(1);
  const Tensor found = layer.forward(input, x, present, {});
  const auto p = layer.named_parameters();
  const Tensor weight = p["map.weight"].unflatten(1, {5, 4}).transpose(1, 2);
  for (int64_t b = 0; b < 2; ++b) {
    const auto own = [&](const Tensor& all) {
      return all[b].narrow(0, 0, lengths[b].item<int64_t>());
    };
    const Tensor near = at::conv1d(own(input).t().unsqueeze(0), weight, p["map.bias"], 1, 2)[0].t();
    const Tensor wanted =
        at::layer_norm(own(x) + at::gelu(near), {4}, p["norm.weight"], p["norm.bias"], 1e-5);
    EXPECT_TRUE(at::allclose(own(found), wanted, 1e-12, 1e-12));
  }
}

TEST(NearConvolution, RefusesEvenWidthsAndSteps) {
  EXPECT_THAT(test::error_of([] { NearConvolution({.depth = 4, .width = 2}); }),
              HasSubstr("the width is 2; it must be odd"));
  TransformerStackConfig config{.layers = 1, .depth = 4, .self = {HeadGroup{}}, .feed_forward = 4};
  config.convolution = 3;
  TransformerStack stack(config);
  EXPECT_THAT(test::error_of([&] { stack.start({}, {}); }), HasSubstr("reads later positions"));
}

}  // namespace near_convolution_test
}  // namespace attend
