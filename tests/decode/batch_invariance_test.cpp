#include "attend/decode/batch_invariance.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <set>
#include <string>

namespace attend {
namespace batch_invariance_test {

using at::Tensor;

using Map = std::function<Tensor(const Tensor&)>;

// Checks that f of all entries of x [B, ..] is bit-identical to f of parts of the batch, and close
// to LibTorch's result.
void expect_invariant(const Map& f, const Tensor& x, const char* name) {
  const at::NoGradGuard no_gradient;
  const Tensor usual = f(x);
  const BatchInvariantGuard invariant;
  const Tensor all = f(x);
  // 700 products of size 1, each of 700 sums rounded: 700^2 2^-24.
  EXPECT_TRUE(at::allclose(all, usual, 1e-4, 0.03)) << name;
  for (const int64_t width : {1, 2, 3, 7, 16, 33})
    for (const int64_t first : {int64_t{0}, int64_t{5}, x.size(0) - width})
      EXPECT_TRUE(at::equal(f(x.narrow(0, first, width).clone()), all.narrow(0, first, width)))
          << name << " " << width << " from " << first;
}

TEST(BatchInvariantGuard, LayersAreInvariant) {
  torch::manual_seed(1);
  // Depths and batches that do not fill vectors or tiles, and some larger than one tile.
  for (const int64_t depth : {20, 130, 700}) {
    const Tensor rows = at::randn({70, depth}), sequences = at::randn({70, 5, depth});
    torch::nn::Linear linear(depth, 33);
    expect_invariant([&](const Tensor& x) { return linear->forward(x); }, rows, "linear");
    expect_invariant([&](const Tensor& x) { return linear->forward(x); }, sequences,
                     "linear of three");
    const Tensor matrix = torch::randn({depth, 21}), vector = torch::randn({depth});
    expect_invariant([&](const Tensor& x) { return at::matmul(x, matrix); }, sequences, "matmul");
    expect_invariant([&](const Tensor& x) { return at::matmul(x, vector); }, sequences, "vector");
    expect_invariant([&](const Tensor& x) { return at::matmul(x, x.transpose(1, 2)); }, sequences,
                     "products");
    torch::nn::GRUCell cell(depth, 21);
    expect_invariant([&](const Tensor& x) { return cell->forward(x); }, rows, "gru cell");
    torch::nn::LSTM lstm(torch::nn::LSTMOptions(depth, 21).bidirectional(true).batch_first(true));
    expect_invariant([&](const Tensor& x) { return std::get<0>(lstm->forward(x)); }, sequences,
                     "lstm");
  }
}

// A network that is trained further gives the answers of the network loaded from its folder.
TEST(BatchInvariantGuard, WeightsThatAreDifferentiatedGiveTheSameBits) {
  torch::manual_seed(3);
  const at::NoGradGuard no_gradient;
  const BatchInvariantGuard invariant;
  const Tensor whole = at::randn({7, 6, 40});
  const Tensor weight = torch::randn({33, 40}, torch::requires_grad());
  const Tensor bias = torch::randn({33}, torch::requires_grad());
  for (const Tensor& x : {whole, whole.slice(1, 1), whole.slice(0, 0, 0)}) {
    EXPECT_TRUE(
        at::equal(at::linear(x, weight, bias), at::linear(x, weight.detach(), bias.detach())));
    const Tensor products = at::matmul(x, weight.t());
    EXPECT_EQ(products.sizes(), (at::IntArrayRef{x.size(0), x.size(1), 33}));
    EXPECT_TRUE(at::equal(products, at::matmul(x, weight.detach().t())));
  }
}

TEST(BatchInvariantGuard, ConvolutionsAndSigmoidsAreInvariant) {
  torch::manual_seed(2);
  torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(3, 8, 3).padding(1));
  expect_invariant([&](const Tensor& x) { return convolution->forward(x); },
                   at::randn({70, 3, 12, 12}), "convolution");
  expect_invariant([](const Tensor& x) { return x.slice(1, 3, 24).sigmoid(); }, at::randn({70, 30}),
                   "sigmoid");
  expect_invariant(
      [](const Tensor& x) {
        Tensor part = x.clone().slice(1, 3, 24);
        return part.sigmoid_();
      },
      at::randn({70, 30}), "sigmoid in place");
}

// Only the guard's operators are registered under its key, which is above autograd. Otherwise
// LibTorch or another library uses the key as well.
TEST(BatchInvariantGuard, HasItsKeyForItself) {
  constexpr auto key = c10::DispatchKey::DeferredInit;
  EXPECT_EQ((c10::DispatchKeySet(key) | c10::autograd_dispatch_keyset).highestPriorityTypeId(),
            key);
  auto& dispatcher = c10::Dispatcher::singleton();
  std::set<std::string> names;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto found = dispatcher.findOp(name);
    if (found && found->hasKernelForDispatchKey(key)) names.insert(name.name);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("aten::mm", "aten::addmm", "aten::bmm",
                                                   "aten::matmul", "aten::mv", "aten::sigmoid",
                                                   "aten::sigmoid_", "aten::convolution"));
}

TEST(BatchInvariantGuard, LeavesAloneWhatItDoesNotKnow) {
  const BatchInvariantGuard invariant;
  const Tensor a = at::randn({3, 4}, at::kDouble), b = at::randn({4, 5}, at::kDouble);
  EXPECT_EQ(at::matmul(a, b).scalar_type(), at::kDouble);
  EXPECT_THROW(at::mm(a, a), c10::Error);
  // Gradients are computed by LibTorch.
  const Tensor weight = torch::ones({5, 4}, torch::requires_grad());
  at::linear(at::ones({3, 4}), weight).sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), at::full({5, 4}, 3.0)));
}

}  // namespace batch_invariance_test
}  // namespace attend
