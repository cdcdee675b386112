#include "attend/nn/without_storage.h"

#include <gtest/gtest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

namespace attend {
namespace without_storage_test {

TEST(WithoutStorage, ModulesOfAnySizeTakeNothing) {
  // Four terabytes each, if they had storage.
  constexpr int64_t huge = 1 << 20;
  torch::nn::Linear linear{nullptr};
  torch::nn::GRU gru{nullptr};
  {
    const WithoutStorage without_storage;
    linear = torch::nn::Linear(huge, huge);
    gru = torch::nn::GRU(torch::nn::GRUOptions(huge, huge).bidirectional(true));
    torch::nn::init::xavier_uniform_(linear->weight);
    EXPECT_TRUE((at::randn({huge, huge}) * 2).is_meta());
  }
  EXPECT_TRUE(linear->weight.is_meta());
  EXPECT_EQ(linear->weight.sizes(), (std::vector<int64_t>{huge, huge}));
  for (const at::Tensor& weight : gru->parameters()) EXPECT_TRUE(weight.is_meta());
  EXPECT_TRUE(at::ones({2}).is_cpu()) << "afterwards";
}

TEST(WithoutStorage, DrawsNothing) {
  torch::manual_seed(4);
  const at::Tensor expected = at::randn({3});
  torch::manual_seed(4);
  {
    const WithoutStorage without_storage;
    at::randn({5}).uniform_();
  }
  EXPECT_TRUE(at::equal(at::randn({3}), expected));
}

}  // namespace without_storage_test
}  // namespace attend
