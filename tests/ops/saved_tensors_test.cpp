// Tests that backward reads the same tensors as forward: an in-place change of a scope's tensor
// between them is an error, or has no effect.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/ops/attention.h"
#include "tests/ops/differences.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace saved_tensors_test {

using at::Tensor;

struct Changed {
  std::string name;
  Tensor tensor;  // a tensor of the scope below
  Scope scope;
  std::function<void(const Tensor&)> change;  // changes it to another valid tensor
};

// New tensors in each call, for 5 queries and 5 keys.
std::vector<Changed> cases() {
  const Tensor mask = at::ones({5, 5}, at::kBool).tril();
  const Tensor offsets = at::tensor({-1, 1}, at::kLong);
  const Tensor lengths = at::tensor({3, 5}, at::kLong), starts = at::tensor({0, 2, 5}, at::kLong);
  const Tensor other_starts = at::tensor({0, 2, 5}, at::kLong);
  const Tensor layout = at::ones({3, 3}, at::kBool).tril();
  const Tensor centres = at::tensor({0.0, 1.0, 2.0, 3.0, 4.0});
  const auto flip = [](const Tensor& x) { x.logical_not_(); };
  const auto zero = [](const Tensor& x) { x.zero_(); };
  const auto grow = [](const Tensor& x) { x.select(0, 0).fill_(5); };
  const auto move = [](const Tensor& x) { x.select(0, 1).fill_(4); };
  return {{"mask", mask, dense_mask(mask), flip},
          {"mask_in_a_union", mask, (causal() & dense_mask(mask)) | prefix(1), flip},
          {"key_lengths", lengths, key_lengths(lengths), grow},
          {"query_lengths", lengths, query_lengths(lengths), grow},
          {"offsets", offsets, window(Window{.right = 1}, offsets), grow},
          {"query_starts", starts, segments(starts, other_starts), move},
          {"key_starts", other_starts, segments(starts, other_starts), move},
          {"layout", layout, block_sparse(layout, 2), flip},
          {"centres", centres, around(centres, 1), zero}};
}

class SavedTensors : public testing::TestWithParam<size_t> {};

// Gradients, or `instead` after LibTorch's error about changed saved tensors.
Tensor gradient_or(const Tensor& instead, const Tensor& value, const Tensors& inputs,
                   bool create_graph) {
  try {
    return gradients(value, inputs, create_graph)[0];
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("modified by an inplace operation"));
    return instead;
  }
}

TEST_P(SavedTensors, OfTheScopeStayAsTheyWere) {
  const Tensor x = at::randn({2, 1, 5, 3}, at::kDouble), weights = at::randn_like(x);
  for (const char* score : {"scaled_dot", "coverage"}) {
    for (const Path path : {Path::composed, Path::fused}) {
      for (const bool create_graph : {false, true}) {
        SCOPED_TRACE(std::string(score) + (path == Path::fused ? " fused" : " composed"));
        const Changed changed = cases()[GetParam()];
        Parameters parameters;
        if (score == std::string("coverage"))
          parameters = {{"v", at::ones({3}, at::kDouble)}, {"w_c", at::ones({3}, at::kDouble)}};
        const AttentionSpec spec = {
            .score = Score(score, parameters), .scope = changed.scope, .path = path};
        const Tensors inputs = leaves({x});
        const auto run = [&] {
          return (attention(inputs[0], inputs[0], inputs[0], spec).context * weights).sum();
        };
        const Tensor before = gradients(run(), inputs, create_graph)[0].detach();
        const Tensor value = run();
        changed.change(changed.tensor);
        EXPECT_TRUE(at::equal(gradient_or(before, value, inputs, create_graph), before));
        // The change has an effect.
        EXPECT_FALSE(at::allclose(gradients(run(), inputs, false)[0], before));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scopes, SavedTensors, testing::Range(size_t{0}, cases().size()),
                         [](const auto& info) { return cases()[info.param].name; });

}  // namespace saved_tensors_test
}  // namespace attend::reference
