#include "attend/mechanisms/convolution_attention.h"

#include <gtest/gtest.h>

#include "tests/nn/module_gradients.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace convolution_attention_test {

using at::Tensor;

struct Kernel {
  int64_t height, width;
};

class EveryKernel : public testing::TestWithParam<Kernel> {};

INSTANTIATE_TEST_SUITE_P(Sizes, EveryKernel,
                         testing::Values(Kernel{3, 3}, Kernel{5, 5}, Kernel{1, 1}, Kernel{1, 3},
                                         Kernel{5, 3}),
                         [](const auto& info) {
                           return fmt::format("{}x{}", info.param.height, info.param.width);
                         });

// Includes the border. Neighbours have weights of exp(-46) = 1e-20. In float64 only the order of
// the sums differs: some 1e-15 times the 25 * 3 products near 1.
TEST_P(EveryKernel, IsTheConvolution) {
  torch::manual_seed(1);
  const auto [height, width] = GetParam();
  const Tensor weight = torch::randn({4, 3, height, width}, at::kDouble);
  const Tensor bias = torch::randn({4}, at::kDouble);
  const Tensor image = torch::randn({2, 3, 9, 7}, at::kDouble);
  const ConvolutionAttention attention(weight, bias);
  EXPECT_EQ(attention.heads(), height * width);
  const Tensor expected = at::conv2d(image, weight, bias, 1, {height / 2, width / 2});
  EXPECT_LT((attention.forward(image) - expected).abs().max().item<double>(), 1e-12);
  const Tensor unbiased = at::conv2d(image, weight, {}, 1, {height / 2, width / 2});
  EXPECT_LT((ConvolutionAttention(weight).forward(image) - unbiased).abs().max().item<double>(),
            1e-12);
}

TEST(ConvolutionAttention, IsTheConvolutionOfAModuleInSinglePrecision) {
  torch::manual_seed(2);
  const torch::nn::Conv2d same(torch::nn::Conv2dOptions(2, 3, 5).padding(torch::kSame));
  const torch::nn::Conv2d padded(torch::nn::Conv2dOptions(2, 3, {3, 5}).padding({1, 2}));
  const Tensor image = torch::randn({1, 2, 16, 11});
  for (const torch::nn::Conv2d& convolution : {same, padded}) {
    const Tensor expected = torch::nn::Conv2d(convolution)->forward(image);
    const Tensor output = ConvolutionAttention(convolution).forward(image);
    // 50 products per pixel, each below 1 and rounded.
    EXPECT_LT((output - expected).abs().max().item<double>(), 50 * 6e-8);
  }
}

// Dependence of the output at the middle of the image on each pixel: its gradient.
Tensor dependence(const std::function<Tensor(const Tensor&)>& layer) {
  const Tensor image = torch::ones({1, 1, 11, 11}, at::kDouble).requires_grad_();
  layer(image)[0][0][5][5].backward();
  return image.grad()[0][0];
}

// The converse is false: no convolution of the kernel's size sees farther.
TEST(ConvolutionAttention, ReachesWhatNoConvolutionOfItsSizeCan) {
  const Tensor weight = torch::ones({1, 1, 3, 3}, at::kDouble);
  const Tensor of_convolution =
      dependence([&](const Tensor& x) { return at::conv2d(x, weight, {}, 1, 1); });
  ConvolutionAttention attention(weight);
  const auto layer = [&](const Tensor& x) { return attention.forward(x); };
  EXPECT_TRUE(at::allclose(dependence(layer), of_convolution, 0, 1e-12));
  EXPECT_EQ(of_convolution[1][9].item<double>(), 0);
  {
    torch::NoGradGuard no_gradient;
    attention.named_parameters()["centres"][0].copy_(torch::tensor({-4.0, 4.0}));
  }
  EXPECT_NEAR(dependence(layer)[1][9].item<double>(), 1, 1e-12);
  {
    torch::NoGradGuard no_gradient;
    attention.named_parameters()["sharpness"][1].fill_(0);  // this head returns the image's mean
  }
  // 13 x 13 pixels with the border; the other 8 heads do not see this pixel.
  EXPECT_NEAR(dependence(layer)[10][0].item<double>(), 1.0 / 169, 1e-12);
}

TEST(ConvolutionAttention, HasGradients) {
  torch::manual_seed(3);
  const Tensor image = torch::randn({1, 2, 3, 4}, at::kDouble);
  const Tensor direction = torch::randn({1, 2, 3, 4}, at::kDouble);
  ConvolutionAttention attention(torch::randn({2, 2, 3, 1}, at::kDouble),
                                 torch::randn({2}, at::kDouble), 0.7);
  const auto loss = [&](const reference::Tensors& inputs) {
    return (attention.forward(inputs[0]).square() * direction).sum();
  };
  reference::expect_gradients(loss, {image}, {"image"});
  ASSERT_EQ(attention.parameters().size(), 4);
  reference::expect_parameter_gradients(attention, [&] { return loss({image}); });
}

TEST(ConvolutionAttention, RefusesWhatItIsNot) {
  using Options = torch::nn::Conv2dOptions;
  const auto making = [](const Options& options) {
    return [options] { ConvolutionAttention attention{torch::nn::Conv2d(options)}; };
  };
  const Tensor weight = torch::ones({2, 1, 3, 3});
  expect_errors({
      {[] {
         ConvolutionAttention(torch::ones({1, 1, 2, 3}));
       },
       "the kernel is 2 x 3; an even side"},
      {[] {
         ConvolutionAttention(torch::ones({1, 2, 3}));
       },
       "weight has shape [1, 2, 3]"},
      {[&] { ConvolutionAttention(weight, torch::ones({1})); },
       "bias has shape [1]; it must be [2]"},
      {[&] { ConvolutionAttention(weight, {}, 0); }, "sharpness is 0; it must be positive"},
      {[&] {
         ConvolutionAttention(weight).forward(torch::ones({1, 2, 4, 4}));
       },
       "x has shape [1, 2, 4, 4]; it must be [batch, 1, height, width]"},
      {making(Options(2, 2, 3).padding(1).stride({2, 1})), "the stride is 2 x 1; it must be 1"},
      {making(Options(2, 2, 3).padding(2).dilation(2)), "the dilation is 2 x 2; it must be 1"},
      {making(Options(2, 2, 3).padding(1).groups(2)), "2 groups; it must have 1"},
      {making(Options(2, 2, 3)), "the padding must be zeros that keep the image's size, 1 x 1"},
      {making(Options(2, 2, 3).padding(1).padding_mode(torch::kReflect)),
       "the padding must be zeros"},
  });
}

}  // namespace convolution_attention_test
}  // namespace attend
