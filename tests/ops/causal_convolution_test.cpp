// Tests of causal_convolution: kernels against tensor operations, derivatives against differences,
// and errors. tests/kernels runs the kernels on every target.
#include "attend/ops/causal_convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/ops/differences.h"

namespace attend::reference {
namespace causal_convolution_test {

using at::Tensor;

Tensors drawn(int64_t batch, int64_t tokens, int64_t channels, int64_t width) {
  at::manual_seed(5);
  const auto normal = [](at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble); };
  return {normal({batch, tokens, channels}), normal({channels, width}), normal({channels}),
          normal({batch, width - 1, channels})};
}

TEST(CausalConvolution, EqualsTensorOperations) {
  for (const bool silu : {false, true})
    for (const auto& [tokens, channels, width] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {3, 5, 4}, {59, 111, 4}, {2, 16, 7}}) {
      const Tensors x = drawn(3, tokens, channels, width);
      for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
        Tensors y = x;
        for (Tensor& each : y) each = each.to(type);
        const auto [output, state] = causal_convolution(y[0], y[1], y[2], y[3], silu);
        const auto [plain, last] = composed_causal_convolution(x[0], x[1], x[2], x[3], silu);
        const double tolerance = type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 0.1;
        EXPECT_TRUE(at::allclose(output.to(at::kDouble), plain, tolerance, tolerance));
        EXPECT_TRUE(at::allclose(state.to(at::kDouble), last, tolerance, tolerance));
      }
      EXPECT_TRUE(at::allclose(causal_convolution(x[0], x[1], {}, {}, silu).output,
                               composed_causal_convolution(x[0], x[1], {}, {}, silu).output));
    }
}

TEST(CausalConvolution, ContinuesFromItsState) {
  const Tensors x = drawn(2, 9, 6, 4);
  const Tensor whole = causal_convolution(x[0], x[1], x[2], x[3], true).output;
  const auto first = causal_convolution(x[0].narrow(1, 0, 2), x[1], x[2], x[3], true);
  const auto rest = causal_convolution(x[0].narrow(1, 2, 7), x[1], x[2], first.state, true);
  EXPECT_TRUE(at::allclose(whole, at::cat({first.output, rest.output}, 1), 1e-12, 1e-12));
}

TEST(CausalConvolution, HasGradients) {
  for (const bool silu : {false, true})
    for (const int64_t tokens : {2, 6}) {
      const Function loss = [silu](const Tensors& x) {
        const auto [output, state] = causal_convolution(x[0], x[1], x[2], x[3], silu);
        return output.sin().sum() + state.square().sum();
      };
      const std::vector<std::string> names = {"input", "weight", "bias", "state"};
      expect_gradients(loss, drawn(2, tokens, 3, 4), names);
      expect_second_gradients(loss, drawn(2, tokens, 3, 4), names);
    }
}

TEST(CausalConvolution, RefusesWhatDoesNotFit) {
  using ::testing::HasSubstr;
  const auto message = [](auto change) -> std::string {
    Tensors x = drawn(2, 9, 6, 4);
    change(x);
    try {
      causal_convolution(x[0], x[1], x[2], x[3]);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([](Tensors&) {}), "");
  EXPECT_THAT(message([](Tensors& x) { x[0] = x[0][0]; }), HasSubstr("input has shape [9, 6]"));
  EXPECT_THAT(message([](Tensors& x) { x[1] = x[1].narrow(0, 0, 5); }),
              HasSubstr("weight has shape [5, 4]; it must have [6, width]"));
  EXPECT_THAT(message([](Tensors& x) { x[2] = x[2].narrow(0, 0, 5); }),
              HasSubstr("bias has shape [5]; it must have [6]"));
  EXPECT_THAT(message([](Tensors& x) { x[3] = x[3].narrow(1, 0, 2); }),
              HasSubstr("state has shape [2, 2, 6]; it must have [2, 3, 6]"));
  EXPECT_THAT(message([](Tensors& x) { x[0] = x[0].to(at::kInt); }), HasSubstr("input is Int"));
}

}  // namespace causal_convolution_test
}  // namespace attend::reference
